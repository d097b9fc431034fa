"""A client for any Kubernetes API server, and the values and rules of Kubernetes around it."""

__version__ = "0.1.0"
