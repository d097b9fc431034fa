"""Measurements: `make bench`. One run, one table, one JSON file; compare ratios, not rates."""
