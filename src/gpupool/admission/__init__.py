"""The admission webhook: checks GPU pods, and connects their containers to their allocation."""
