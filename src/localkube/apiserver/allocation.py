"""apart: while a large request is worked on, new objects come from the C library.

Python's own allocator takes a megabyte at a time, and gives it back when nothing in it is used. A
large request takes fifty of them; whatever is made meanwhile and stays (an entry of a cache, the
name of a field) keeps its whole megabyte. The C library gives back single pages (`give_back` in
memory.py).

Nobody has to remember which object is from where: Python's `free` and `realloc` hand on whatever is
not theirs to the C library. Ordinary requests pay nothing. This is so with Python's usual
allocator; with any other (PYTHONMALLOC, tracemalloc, another Python), nothing is done.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_OF_THE_C_LIBRARY, _OF_BUFFERS, _OF_OBJECTS = 0, 1, 2  # Python's numbers of its allocators
_MOST_HEAPS = -8  # glibc's M_ARENA_MAX


class _Allocator(ctypes.Structure):
    """Python's PyMemAllocatorEx."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class _Switch:
    """The allocator is the process's, and so are the requests that are worked on now: tests run
    several servers in one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual: _Allocator | None = None

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1 and _is_usual():
                self._usual = usual = _allocator(_OF_OBJECTS)
                _set(_mixed(usual))

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            usual = self._usual
            if self._inside or usual is None:
                return
            self._usual = None
            if bytes(_allocator(_OF_OBJECTS)) == bytes(_mixed(usual)):  # or tracemalloc came
                _set(usual)


_switch = _Switch()


@contextmanager
def apart() -> Iterator[None]:
    """What is allocated inside, by any thread, is from the C library."""
    _switch.enter()
    try:
        yield
    finally:
        _switch.leave()


@cache
def use_one_heap() -> None:
    """glibc makes a heap for each thread, and never gives back the end of any but the first. To be
    called before there are threads."""
    try:
        ctypes.CDLL(None).mallopt(_MOST_HEAPS, 1)
    except (AttributeError, OSError):
        return  # another C library: it keeps less


def _is_usual() -> bool:
    try:
        name = ctypes.pythonapi._PyMem_GetCurrentAllocatorName
    except AttributeError:
        return False
    name.restype = ctypes.c_char_p
    return bool(name() == b"pymalloc")


def _mixed(usual: _Allocator) -> _Allocator:
    plain = _allocator(_OF_THE_C_LIBRARY)
    return _Allocator(usual.context, plain.malloc, plain.calloc, usual.realloc, usual.free)


def _allocator(which: int) -> _Allocator:
    found = _Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(which, ctypes.byref(found))
    return found


def _set(allocator: _Allocator) -> None:
    for which in (_OF_BUFFERS, _OF_OBJECTS):
        ctypes.pythonapi.PyMem_SetAllocator(which, ctypes.byref(allocator))
