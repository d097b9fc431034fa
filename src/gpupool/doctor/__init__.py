"""Looks at an installation, and says what is wrong with it and how to mend it.

`look.py` asks the API server; `checks.py` judges what it found, and is pure.
"""
