"""Keeps memory small after large requests: caches that forget, and what was freed is given back."""

import ctypes
import gc
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from typing import Any, TypeVar

_LONGEST = 512  # a text that is longer is nothing that comes again
_MANY = 1_024  # what ordinary work remembers

_T = TypeVar("_T")
_Cache = TypeVar("_Cache", bound=Callable[..., Any])
_caches: list[Any] = []


def remembered(most: int) -> Callable[[Callable[[str], _T]], Callable[[str], _T]]:
    """lru_cache for functions of a text that clients send: long ones are not kept, and all are
    forgotten after large requests, whose texts would fill the cache and never come again."""

    def decorated(function: Callable[[str], _T]) -> Callable[[str], _T]:
        known = forgotten(lru_cache(maxsize=most)(function))

        @wraps(function)
        def remembering(text: str) -> _T:
            return known(text) if len(text) <= _LONGEST else function(text)

        return remembering

    return decorated


def forgotten(known: _Cache) -> _Cache:
    """An lru_cache that is emptied after large requests."""
    _caches.append(known)
    return known


def give_back() -> None:
    """The C library keeps what was freed between blocks that are still used. Takes milliseconds,
    and holds no other thread."""
    for known in _caches:
        if known.cache_info().currsize > _MANY:
            known.cache_clear()
    gc.collect(1)  # the young ones: what a refused request has left in circles
    _clear_free_lists()
    trim = _trim()
    if trim is not None:
        trim(0)


def _clear_free_lists() -> None:
    """Python keeps thousands of tuples, lists and dicts for later, wherever they are: each holds a
    whole megabyte of freed memory. A full collection lets go of them; frozen, it looks at
    nothing. What the server froze at its start is looked at again from now on, by collections that
    are rare."""
    gc.freeze()
    try:
        gc.collect()
    finally:
        gc.unfreeze()


@cache
def _trim() -> Callable[[int], int] | None:
    """glibc's; other C libraries keep less."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return found
