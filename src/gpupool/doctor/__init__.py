"""Checks an installation, and says what is wrong and how to repair it.

`look.py` asks the API server; `checks.py` judges what it found, and is pure.
"""
