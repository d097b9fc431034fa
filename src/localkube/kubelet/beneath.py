"""Paths that somebody else can change while we use them: in volumes, on nodes' disks, in the root
of a container.

Such a path is never checked first and used afterwards: between the two, a program in a container
puts a link in its place. It is resolved once, and what comes out is a descriptor. Whoever reads,
writes, makes or mounts uses that descriptor, and no path again.

    root = open_trusted("/data/pods/.../volumes/0")   a directory whose path nobody else can change
    place = open_beneath(root, "models/now")          a descriptor, or OSError

Links are followed as long as they stay below `root`; one that leads out raises LeadsOut. The kernel
does this in one call since Linux 5.6 (openat2). Before, we go from name to name with O_NOFOLLOW,
and read links ourselves.
"""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator, Sequence

from localkube.kubelet import kernel

_SYS_OPENAT2 = 437  # the same number on every architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH, _IN_ROOT = 0x02, 0x04, 0x08, 0x10
_AGAIN = 32  # while somebody renames directories, the kernel cannot tell whether ".." leads out
_How = ctypes.c_uint64 * 3  # struct open_how: flags, mode, resolve
_HOW_SIZE = ctypes.sizeof(_How)
_MOST_LINKS = 40
_HERE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LeadsOut(OSError):
    """A link, or "..", leads out of the directory."""


def open_trusted(path: str | os.PathLike[str]) -> int:
    """A descriptor for a path that only the user of this machine can change."""
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def open_beneath(root: int, path: str, *, as_root: bool = False, links: bool = True) -> int:
    """A descriptor (O_PATH) for what `path` leads to. `as_root`: absolute links begin at `root`,
    and ".." does not leave it, as for a program whose root it is; otherwise both raise LeadsOut.
    Without `links`, a link raises OSError (ELOOP)."""
    if "\0" in path:
        raise OSError(errno.EINVAL, f"path {path!r} contains a NUL byte")
    try:
        return _openat2(root, path, as_root=as_root, links=links)
    except OSError as error:
        # EPERM: a filter around us (an older Docker's) that does not know the call.
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
    return _walked(root, path, as_root=as_root, links=links)


def _openat2(root: int, path: str, *, as_root: bool, links: bool) -> int:
    resolve = (_IN_ROOT if as_root else _BENEATH) | _NO_MAGICLINKS | (0 if links else _NO_SYMLINKS)
    how = _How(os.O_PATH | os.O_CLOEXEC, 0, resolve)
    name = os.fsencode(path) or b"."
    call = kernel.system_call(_SYS_OPENAT2, "int text at size")
    left = _AGAIN
    while True:
        try:
            return call(root, name, how, _HOW_SIZE)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise _out(path) from None
            left -= 1
            if error.errno != errno.EAGAIN or not left:
                raise OSError(error.errno, error.strerror, path) from None


def _walked(root: int, path: str, *, as_root: bool, links: bool) -> int:
    """As openat2, in steps. The way back ("..") is the descriptors that we came by."""
    way = [os.dup(root)]
    followed = 0
    try:
        left = _begun(way, path, as_root=as_root)
        while left:
            name = left.pop(0)
            if name == "..":
                _step_back(way, path, as_root=as_root)
                continue
            found = os.open(name, _HERE, dir_fd=way[-1])
            if not stat.S_ISLNK(os.fstat(found).st_mode):
                way.append(found)
                continue
            with opened(found):
                target = os.readlink("", dir_fd=found)
            followed += 1
            if not links or followed > _MOST_LINKS:
                raise OSError(errno.ELOOP, f"{path!r}: {os.strerror(errno.ELOOP)}")
            left = [*_begun(way, target, as_root=as_root), *left]
        return os.dup(way[-1])
    finally:
        for descriptor in way:
            os.close(descriptor)


def _begun(way: list[int], path: str, *, as_root: bool) -> list[str]:
    """The names in the path. The way begins anew if it is absolute."""
    if path.startswith("/"):
        if not as_root:
            raise _out(path)
        while len(way) > 1:
            os.close(way.pop())
    return [part for part in path.split("/") if part not in ("", ".")]


def _step_back(way: list[int], path: str, *, as_root: bool) -> None:
    if len(way) > 1:
        os.close(way.pop())
    elif not as_root:
        raise _out(path)


def _out(path: str) -> LeadsOut:
    return LeadsOut(errno.EXDEV, f"{path!r} leads out of its directory")


def make_beneath(
    root: int, path: str, *, is_file: bool = False, as_root: bool = False, links: bool = True
) -> int:
    """As `open_beneath`. What is missing is made: directories, and a file at the end."""
    missing: list[str] = []
    there = path
    while True:
        try:
            found = open_beneath(root, there, as_root=as_root, links=links)
            break
        except FileNotFoundError:
            there, _, name = there.rstrip("/").rpartition("/")
            if name in ("", ".", ".."):
                raise
            missing.append(name)
    while missing:
        with opened(found) as above:
            name = missing.pop()
            mode = 0o755 if as_root else 0o700
            found = make_in(above, name, is_file=is_file and not missing, mode=mode)
    return found


def make_in(parent: int, name: str, *, is_file: bool = False, mode: int = 0o755) -> int:
    """A descriptor (O_PATH) for a directory or file that is directly in `parent`, and is made if it
    is missing. A link raises LeadsOut. `mode`: of a directory."""
    with contextlib.suppress(FileExistsError):  # somebody else was faster
        if is_file:
            flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_WRONLY
            os.close(os.open(name, flags, 0o600, dir_fd=parent))
        else:
            os.mkdir(name, mode, dir_fd=parent)
    made = os.open(name, _HERE, dir_fd=parent)
    if stat.S_ISLNK(os.fstat(made).st_mode):  # to nothing, or just now put there
        os.close(made)
        raise LeadsOut(errno.ELOOP, f"{name!r} is a link that leads nowhere")
    return made


def open_steps(root: str, inside: Sequence[str], *, make: bool = False) -> int:
    """A descriptor for the last of several paths, each beneath what the one before led to: a
    hostPath on its node's disk, then a subPath in that volume."""
    found = open_trusted(root)
    for path in inside:
        above = found
        try:
            found = make_beneath(above, path) if make else open_beneath(above, path)
        finally:
            os.close(above)
    return found


@contextlib.contextmanager
def opened(descriptor: int) -> Iterator[int]:
    """The descriptor, which is closed after the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def path_of(descriptor: int) -> str:
    """A path to what the descriptor stands for. No name in it can be changed by others."""
    return f"/proc/self/fd/{descriptor}"


def directory_in(parent: int, name: str, mode: int = 0o755) -> int:
    """A directory that is directly in `parent`; it is made, also in place of anything else that
    has its name, and can be used, whatever its permissions were."""
    for _ in range(_AGAIN):
        try:
            return os.open(name, _DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=parent)
        except PermissionError:
            with opened(os.open(name, _HERE | os.O_DIRECTORY, dir_fd=parent)) as closed:
                os.chmod(path_of(closed), 0o700)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                os.unlink(name, dir_fd=parent)
    raise OSError(errno.EAGAIN, f"{name!r} is replaced again and again")


def read_in(parent: int, name: str, most: int) -> bytes | None:
    """The first `most` bytes of a plain file that is directly in `parent`; None: it is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=parent)
    except OSError:
        return None
    with opened(descriptor):  # `open` would leave the descriptor of a directory open
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)


def replace_in(parent: int, name: str, content: bytes, mode: int) -> None:
    """Writes a file that is directly in `parent`: beside it and renamed, so that a reader sees the
    old content or the new one."""
    # No other file has this name: Kubernetes refuses keys and paths that begin with two dots.
    aside = f"..{name}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(aside, dir_fd=parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(aside, flags, 0o600, dir_fd=parent), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
    os.rename(aside, name, src_dir_fd=parent, dst_dir_fd=parent)
