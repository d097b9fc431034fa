"""The admission webhook: GPU pods are checked, modernised and wired to their allocation."""
