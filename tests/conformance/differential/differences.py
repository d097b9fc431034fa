"""Steps of the scripts at which the local cluster answers differently on purpose, and why.

By script and the line of the step. docs/conformance.md shows them. A step that is listed and no
longer differs fails `make conformance`, as one does that differs and is not listed.
"""

DIFFERENCES: dict[str, dict[str, str]] = {}
