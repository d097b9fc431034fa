"""A node of the local cluster: runs pods as timers or as local processes."""
