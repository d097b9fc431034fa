"""One object of the API as a value for tables and pages. Pure."""
