"""Program: pods -> nodes."""
