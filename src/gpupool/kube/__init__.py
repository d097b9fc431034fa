"""Edge: any Kubernetes API server, as a client."""
