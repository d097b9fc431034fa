"""Program: a Kubernetes-API-compatible cluster in one process."""
