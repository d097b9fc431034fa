"""Table answers for kubectl get."""
