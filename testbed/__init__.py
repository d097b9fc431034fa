"""Real Kubernetes programs on this machine, for recording and checking against."""
