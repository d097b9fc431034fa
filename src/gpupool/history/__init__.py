"""What cards were asked for, given and used over time: the store, who fills it, who reads it."""
