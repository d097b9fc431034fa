"""Makes the API server's data files: `python -m tools.schemas` (see __main__)."""
