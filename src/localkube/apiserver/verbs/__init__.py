"""create, get, list, watch, update, patch, delete."""
