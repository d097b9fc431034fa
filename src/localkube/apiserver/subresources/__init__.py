"""scale, status, binding, eviction, token, log, exec and friends."""
