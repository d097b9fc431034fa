"""Requests for GPUs in the words of other systems, translated into ours. Pure.

Each system has a module that reads its words into wishes (`wishes.py`); `translate.py` makes of
them what we understand, or says why it cannot be meant exactly.
"""
