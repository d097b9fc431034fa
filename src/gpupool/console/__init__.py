"""The console: shows the cluster's GPUs in a browser. It only reads."""
