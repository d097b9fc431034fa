"""What commands print: tables and records as text, JSON or YAML, once or whenever they change.

A command makes a `Table` (or a `Record`, or `Prose`) and gives it to its `Output`.
"""
