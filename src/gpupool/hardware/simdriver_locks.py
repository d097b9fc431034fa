"""Locks on a state file. They also tell which processes live, and their pids.

Each process holds a lock on the byte of its slot. The kernel releases it when the process ends, in
whatever way: so a held lock means a living process, and no count is left over after kill -9.
native/process/byte_lock.h does the same for the libraries. Linux only.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import struct
import time
from collections.abc import Iterator
from functools import cache

from gpupool.hardware import simdriver_layout as layout

_FLOCK = struct.Struct("hhxxxxqqixxxx")  # struct flock on 64-bit Linux
_FUTEX = {"x86_64": 202, "aarch64": 98}  # the number of the system call
_FUTEX_WAKE = 1
_EVERYBODY = 0x7FFFFFFF


class StillLocked(OSError):
    """Somebody else has held the lock for too long. Any program of a container can."""


@contextlib.contextmanager
def held(fd: int, byte: int, patience_s: float = 0.05) -> Iterator[None]:
    """Takes the lock of a byte, and waits for it, but not for ever: whoever waits may be the event
    loop of a whole cluster. The kernel releases it if this process dies. Raises StillLocked."""
    # Locks of the open file: a POSIX lock would be lost as soon as this process closes any other
    # descriptor of the same file.
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _request(fcntl.F_WRLCK, byte))
            break
        except (BlockingIOError, PermissionError):
            if time.monotonic() > deadline:
                raise StillLocked(errno.EAGAIN, "the driver's state is locked") from None
            time.sleep(0.001)
    try:
        yield
    finally:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _request(fcntl.F_UNLCK, byte))


def is_alive(fd: int, state: layout.State, slot: int) -> bool:
    entry = state.slots[slot]
    if not entry.pid:
        return False
    kind, *_ = _ask(fd, fcntl.F_OFD_GETLK, layout.LOCK_SLOT + slot)
    if kind != fcntl.F_UNLCK:
        return True
    # A process that closed all its files, as daemons do, has lost its lock but may still run.
    return bool(
        entry.namespace == _own_namespace()
        and _start_time(entry.pid) == entry.start_time
        and _has_mapped(entry.pid, os.fstat(fd).st_ino)
    )


def visible_pid(fd: int, state: layout.State, slot: int) -> int | None:
    """The pid in our own namespace. The kernel translates the owner of a lock (F_GETLK)."""
    entry = state.slots[slot]
    if entry.namespace == _own_namespace():
        return int(entry.pid)
    # A lock of the open file has no pid. So each process holds a POSIX lock on this byte as well.
    *_, pid = _ask(fd, fcntl.F_GETLK, layout.LOCK_OWNER + slot)
    return pid if pid > 0 else None


def wake_all(address: int) -> None:
    """Wakes all processes that wait on this word (futex). On an architecture whose system call
    number is not known, they notice within a second anyway."""
    number = _FUTEX.get(platform.machine())
    if number is not None:
        wake = ctypes.c_int(_FUTEX_WAKE)
        _libc().syscall(number, ctypes.c_void_p(address), wake, ctypes.c_int(_EVERYBODY), 0, 0, 0)


def _ask(fd: int, command: int, byte: int) -> tuple[int, int, int, int, int]:
    answer = fcntl.fcntl(fd, command, _request(fcntl.F_WRLCK, byte))
    kind, whence, start, length, pid = _FLOCK.unpack(answer)
    return kind, whence, start, length, pid


def _request(kind: int, byte: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0)


def _start_time(pid: int) -> int | None:
    """In clock ticks since boot; None for a process that is not there or has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of the program comes before, and may itself contain brackets and blanks.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # The start time is field 22 of proc(5); the fields here begin with the third. Z and X: it has
    # ended.
    return None if fields[0] in b"ZX" else int(fields[19])


def _has_mapped(pid: int, inode: int) -> bool:
    """Whether the process has the state file mapped. If not, it has become another program (exec).
    A process whose maps we may not read is assumed to have it."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return any(line.split(maxsplit=5)[4] == b"%d" % inode for line in file)
    except OSError:
        return True


@cache
def _own_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
