"""Checks an installation, and says what is wrong and how to repair it.

`look.py` asks the API server; `checks.py`, and the `..._checks.py` beside it, judge what it found
and are pure. `canary_run.py` starts pods, and `canary.py` judges what they saw.
"""
