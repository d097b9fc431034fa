"""The console: the cluster in a browser, with the rights of whoever looks at it."""
