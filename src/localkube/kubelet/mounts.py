"""Bind mounts from a descriptor to a descriptor: no path is looked up a second time.

Since Linux 5.2, a mount is first copied (open_tree), then changed while nobody can see it
(mount_setattr, Linux 5.12), then put in its place (move_mount). Before, the same is done with
mount(2) on /proc/self/fd, which leads to exactly what the descriptor stands for.
"""

import ctypes
import errno
import os
from collections.abc import Callable

from localkube.kubelet import kernel
from localkube.kubelet.beneath import path_of

# The numbers are the same on every architecture.
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_CLONE, _CLOEXEC, _EMPTY_PATH, _RECURSIVE = 1, os.O_CLOEXEC, 0x1000, 0x8000
_FROM_DESCRIPTOR, _TO_DESCRIPTOR = 0x04, 0x40

RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8  # both as flags of mount(2) and as MOUNT_ATTR_*
REMOUNT, BIND, REC, PRIVATE = 32, 4096, 16384, 1 << 18
_KEPT = NOSUID | NODEV | NOEXEC

Reopen = Callable[[], int]


def bind(source: int, place: int, attributes: int, again: Reopen) -> None:
    """Mounts what is at `source`, with the mounts below it, over `place`. `attributes`: RDONLY,
    NOSUID, NODEV, NOEXEC. `again` opens the place once more, for kernels before 5.12: a descriptor
    from before the mount does not see the mount."""
    try:
        flags = _CLONE | _CLOEXEC | _EMPTY_PATH | _RECURSIVE
        tree = kernel.system_call(_SYS_OPEN_TREE, "int text int")(source, b"", flags)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        mount(path_of(source), path_of(place), BIND | REC)
        _remount(source, again, attributes)
        return
    try:
        is_set = _set(tree, attributes)
        move = kernel.system_call(_SYS_MOVE_MOUNT, "int text int text int")
        move(tree, b"", place, b"", _FROM_DESCRIPTOR | _TO_DESCRIPTOR)
    finally:
        os.close(tree)
    if not is_set:
        _remount(source, again, attributes)


def _set(tree: int, attributes: int) -> bool:
    """False: the kernel has no mount_setattr."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = _EMPTY_PATH | _RECURSIVE
    try:
        change = kernel.system_call(_SYS_MOUNT_SETATTR, "int text int at size")
        change(tree, b"", flags, wanted, ctypes.sizeof(wanted))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True


def _remount(source: int, again: Reopen, attributes: int) -> None:
    """Changes this mount only, not those below it. Its present flags must be repeated, or the
    kernel refuses."""
    place = again()
    try:
        if not os.path.samestat(os.fstat(place), os.fstat(source)):
            raise OSError(errno.EAGAIN, "a mount point was replaced while it was used")
        present = os.statvfs(place).f_flag & _KEPT
        mount("", path_of(place), BIND | REMOUNT | attributes | present)
    finally:
        os.close(place)


def mount(
    source: str, target: str, flags: int, kind: str | None = None, options: str | None = None
) -> None:
    """mount(2)."""
    given, place, fs = (os.fsencode(text) if text else None for text in (source, target, kind))
    data = options.encode() if options else None
    kernel.function("mount", "text text text ulong text")(given, place, fs, flags, data)
