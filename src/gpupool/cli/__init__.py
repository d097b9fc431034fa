"""The command line: each command turns its flags into settings and runs a program with them."""
