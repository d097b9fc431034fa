"""How we decide. Pure functions: no I/O, no clock, no randomness."""
