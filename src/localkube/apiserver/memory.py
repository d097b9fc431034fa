"""Gives memory that a large request has left empty back to the system."""

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """The C library keeps what was freed between blocks that are still used. Takes milliseconds,
    and holds no other thread."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """glibc's; other C libraries keep less."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return found
