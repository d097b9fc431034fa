"""The directories of the kubelets: private ones, those of each node, and paths for sockets in them.

<directory>/nodes/<number>      the node's own disk, as pods see it by hostPath
<directory>/hardware/<number>   what the node hooks keep for the node: simulated hardware, say

A node's number is a hash of its name: names that people choose never become paths.
"""

import contextlib
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path


def make_private(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


_LONGEST = 107
_ROOM = 48  # for the name of a socket


class SocketPaths:
    """Paths to directories below `directory` that are short enough for sockets in them.

    The kernel takes 107 bytes for the path of a socket, and a data directory may have a longer one.
    Such a path is replaced by one through /proc/self/fd, which only this process can use."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def short_path(self, path: Path) -> Path:
        if len(os.fsencode(path)) + 1 + _ROOM <= _LONGEST:
            return path
        return Path(f"/proc/self/fd/{self._descriptor}") / path.relative_to(self._directory)

    def close(self) -> None:
        os.close(self._descriptor)


_DISKS, _HARDWARE = "nodes", "hardware"
DEVICE_PLUGINS = "var/lib/kubelet/device-plugins"
POD_RESOURCES = "var/lib/kubelet/pod-resources"


def node_disk(directory: Path, name: str) -> Path:
    return make_private(directory / _DISKS / _number(name))


def node_hardware(directory: Path, name: str) -> Path:
    return directory / _HARDWARE / _number(name)


def set_aside(directory: Path, name: str) -> list[Path]:
    """Renames the directories of a node that is gone, so that a new node of the same name can start
    at once; returns them for deletion."""
    return _renamed(directory / kind / _number(name) for kind in (_DISKS, _HARDWARE))


def node_directories(directory: Path) -> list[Path]:
    """Of all nodes, also of those that are gone."""
    kinds = (make_private(directory / kind) for kind in (_DISKS, _HARDWARE))
    return [path for kind in kinds for path in kind.iterdir()]


def set_aside_all_but(paths: Iterable[Path], names: Iterable[str]) -> list[Path]:
    """Those of `paths` that belong to none of these nodes, renamed, for deletion."""
    known = {_number(name) for name in names}
    return _renamed(path for path in paths if path.name not in known)


def _renamed(paths: Iterable[Path]) -> list[Path]:
    aside = []
    for path in paths:
        gone = path.with_name(f"gone-{os.urandom(8).hex()}")
        with contextlib.suppress(FileNotFoundError):
            path.rename(gone)
            aside.append(gone)
    return aside


def _number(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:16]
