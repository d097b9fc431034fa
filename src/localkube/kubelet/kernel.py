"""Calls of the Linux kernel that Python has no function for. Each raises OSError."""

import ctypes
import os
from functools import cache

AT_FDCWD = -100
_MACHINE = os.uname().machine if hasattr(os, "uname") else ""


@cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def check(done: int, what: str) -> int:
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return done


def call(what: str, number: int, *arguments: object) -> int:
    """A system call by its number. Whole numbers are passed as the 64 bits of a register: as a C
    int, the upper half of a negative one or of a set of flags would be undefined."""
    given = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    return check(libc().syscall(ctypes.c_long(number), *given), what)


def prctl(what: str, option: int, *arguments: int) -> int:
    given = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    return check(libc().prctl(ctypes.c_int(option), *given), f"prctl {what}")


def numbered(x86_64: int, aarch64: int) -> int | None:
    """The number of a system call that is not the same on all architectures; None: unknown."""
    return {"x86_64": x86_64, "aarch64": aarch64}.get(_MACHINE)
