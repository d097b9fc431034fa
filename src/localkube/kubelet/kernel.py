"""Calls of the Linux kernel that Python has no function for. Each raises OSError.

They are prepared once, with the types of their arguments: a container's start makes hundreds.
"""

import ctypes
import os
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_long, c_size_t, c_ulong, c_void_p
from functools import cache
from typing import Any

AT_FDCWD = -100
_MACHINE = os.uname().machine if hasattr(os, "uname") else ""
_TYPES: dict[str, Any] = {
    "int": c_int,
    "long": c_long,
    "ulong": c_ulong,
    "size": c_size_t,
    "text": c_char_p,
    "at": c_void_p,
}

Call = Callable[..., int]


@cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def function(name: str, types: str) -> Call:
    """A function of the C library. `types`: of its arguments, by name; "at": a place in memory."""
    # Not libc().syscall: whoever asks for it shares it, and its types, with all others.
    found: Any = libc()[name]
    found.argtypes = [_TYPES[each] for each in types.split()]

    def call(*arguments: object) -> int:
        done: int = found(*arguments)
        if done < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        return done

    return call


@cache
def system_call(number: int, types: str) -> Call:
    """A system call by its number."""
    call = function("syscall", f"long {types}")
    return lambda *arguments: call(number, *arguments)


def prctl(option: int, *arguments: int) -> int:
    return function("prctl", "int ulong ulong ulong ulong")(option, *(*arguments, 0, 0, 0, 0)[:4])


def numbered(x86_64: int, aarch64: int) -> int | None:
    """The number of a system call that is not the same on all architectures; None: unknown."""
    return {"x86_64": x86_64, "aarch64": aarch64}.get(_MACHINE)
