"""Objects as bytes in memory, SQLite on disk, watch history."""
