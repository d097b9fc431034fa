"""The API server. Controllers and kubelets reach it as clients only."""
