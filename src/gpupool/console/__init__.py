"""The console: what the cluster's GPUs do, in a browser. It only reads."""
