"""Controllers: each a client of the API server."""
