"""CEL, the Common Expression Language, as Kubernetes uses it: each evaluation has a budget."""
