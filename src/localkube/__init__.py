"""A Kubernetes cluster in one process: API server, controllers, a scheduler and nodes."""

__version__ = "0.1.0"
