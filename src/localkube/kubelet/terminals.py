"""Terminals for programs of containers."""

import fcntl
import os
import pty
import stat

# Of Linux, not in `termios`: unlocks a terminal; opens its other end without a path (Linux 4.13).
_TIOCSPTLCK, _TIOCGPTPEER = 0x40045431, 0x5441
_PTMX = os.makedev(5, 2)


def open_terminal(pid: int) -> tuple[int, int]:
    """Our end and the program's end. The terminal is one of the container of `pid`, so that its
    programs find it in their /dev/pts. A terminal of this machine, which they find nowhere, works
    too: it is used for a container that does not run or has no terminals of its own."""
    try:
        return _opened_in(pid)
    except OSError:
        return pty.openpty()


def _opened_in(pid: int) -> tuple[int, int]:
    if pid == 0:
        raise ProcessLookupError
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    ours = os.open(f"/proc/{pid}/root/dev/pts/ptmx", flags)
    try:
        found = os.fstat(ours)
        # The container may have put something else there.
        if not stat.S_ISCHR(found.st_mode) or found.st_rdev != _PTMX:
            raise FileNotFoundError
        os.set_blocking(ours, True)
        fcntl.ioctl(ours, _TIOCSPTLCK, b"\0\0\0\0")
        theirs = fcntl.ioctl(ours, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
    except BaseException:
        os.close(ours)
        raise
    os.set_inheritable(theirs, False)
    return ours, theirs
