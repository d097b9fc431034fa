"""For other people's tests: a local cluster as a context manager, and as a pytest fixture."""
