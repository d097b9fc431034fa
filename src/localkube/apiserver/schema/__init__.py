"""Schemas of the served kinds: checks, merge keys, OpenAPI."""
