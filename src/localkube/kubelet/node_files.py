"""Where a node keeps its files: named by number, not by the names that people give.

<directory>/nodes/<number>      the node's own disk, as pods see it by hostPath
<directory>/hardware/<number>   what the node hooks keep for it: simulated hardware, say
"""

import contextlib
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from localkube.kubelet.private_files import make_private, remove_tree

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
