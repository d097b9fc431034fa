"""Deletes directories that programs in containers have written, or still write."""

import contextlib
import os
from pathlib import Path

_PLAIN_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(directory: Path) -> None:
    """Deletes a tree, including directories without permissions. Links are deleted, not followed,
    also if a program puts them there just now. However deep the tree is: each directory in it is
    first moved up, to directly below `directory`."""
    with contextlib.suppress(OSError):
        top = os.open(directory, _PLAIN_DIRECTORY)
        try:
            _usable(top)
            _empty(top)
        finally:
            os.close(top)
    for remove in (os.rmdir, os.unlink):  # it may be a link or a file
        with contextlib.suppress(OSError):  # gone; or somebody still writes there
            remove(directory)


def _usable(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # not ours
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)


def _empty(top: int) -> None:
    left = _remove_files(top)
    moved = 0
    while left:
        name = left.pop()
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours
            place = os.open(name, _PLAIN_DIRECTORY, dir_fd=top)
            try:
                _usable(place)
                for inner in _remove_files(place):
                    moved += 1
                    up = f"..removed-{moved}-{os.urandom(4).hex()}"
                    with contextlib.suppress(OSError):
                        _move_up(place, inner, top, up)
                        left.append(up)
            finally:
                os.close(place)
            os.rmdir(name, dir_fd=top)


def _move_up(place: int, name: str, top: int, new: str) -> None:
    # The kernel writes its new parent into a directory that moves: that needs permission.
    descriptor = os.open(name, _PLAIN_DIRECTORY, dir_fd=place)
    _usable(descriptor)
    os.close(descriptor)
    os.rename(name, new, src_dir_fd=place, dst_dir_fd=top)


def _remove_files(place: int) -> list[str]:
    """Deletes everything in it but directories, and returns their names."""
    directories = []
    for name in os.listdir(f"/proc/self/fd/{place}"):
        try:
            os.unlink(name, dir_fd=place)
        except IsADirectoryError:
            directories.append(name)
        except OSError:
            continue
    return directories
