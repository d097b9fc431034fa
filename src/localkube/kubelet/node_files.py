"""The directories of the kubelets: private ones, those of each node, and paths for sockets in them.

<directory>/nodes/<number>      the node's own disk, as pods see it by hostPath
<directory>/hardware/<number>   what the node hooks keep for the node: simulated hardware, say

A node's number is a hash of its name: names that people choose never become paths.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path


def make_private(directory: Path) -> Path:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def remove_tree(directory: Path) -> None:
    """Also what a program has closed to everybody. Links are removed, not followed."""
    for parent, names, _ in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(directory, ignore_errors=True)


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


_DISKS, _HARDWARE = "nodes", "hardware"
DEVICE_PLUGINS = "var/lib/kubelet/device-plugins"
POD_RESOURCES = "var/lib/kubelet/pod-resources"


def node_disk(directory: Path, name: str) -> Path:
    return make_private(directory / _DISKS / _number(name))


def node_hardware(directory: Path, name: str) -> Path:
    return directory / _HARDWARE / _number(name)


def set_aside(directory: Path, name: str) -> list[Path]:
    """What is left of a node that is gone, out of the way of another of its name: to be removed."""
    aside = []
    for kind in (_DISKS, _HARDWARE):
        path = directory / kind / _number(name)
        gone = path.with_name(f"gone-{os.urandom(8).hex()}")
        with contextlib.suppress(FileNotFoundError):
            path.rename(gone)
            aside.append(gone)
    return aside


def sweep(directory: Path, names: Iterable[str]) -> None:
    """Removes the files of nodes that are no more."""
    known = {_number(name) for name in names}
    for kind in (_DISKS, _HARDWARE):
        for path in make_private(directory / kind).iterdir():
            if path.name not in known:
                remove_tree(path)


def _number(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:16]
