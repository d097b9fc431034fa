"""Paths for sockets: the kernel takes 107 bytes, and a data directory's path may be longer."""

import os
from pathlib import Path

_LONGEST = 107
_ROOM = 48  # for the name of a socket


class SocketPaths:
    """Ways to directories below `directory` that leave room for a socket's name: where their path
    does not, the way leads through a descriptor of this process, and only it can go there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def way_to(self, path: Path) -> Path:
        if len(os.fsencode(path)) + 1 + _ROOM <= _LONGEST:
            return path
        return Path(f"/proc/self/fd/{self._descriptor}") / path.relative_to(self._directory)

    def close(self) -> None:
        os.close(self._descriptor)
