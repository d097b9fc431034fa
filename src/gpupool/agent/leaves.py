"""Leaves: the cgroups of containers on a node, which the driver's memory limits are set on."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}"
_POD = re.compile(rf"pod({_UID})(?:\.slice)?$")
_CONTAINER = re.compile(r"(?:[a-z][a-z-]*-)?([0-9a-f]{64})(?:\.scope)?$")
# Of the kubelet's cgroup driver: its own, and systemd's. `kubelet.slice` is kind's.
_TOPS = ("kubepods", "kubelet")
_PROBE = "gpupool-probe-"
_DEEPEST = 4  # kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod….slice/….scope


class Leaf(NamedTuple):
    pod: str  # uid
    container: str  # id, as in the pod's status
    path: str  # of its directory


class Leaves(Protocol):
    """What there is on a node. Every method may raise OSError."""

    def all(self) -> list[Leaf]: ...

    def tops(self) -> list[str]:
        """The topmost cgroups of pods, where the driver adds up reservations."""

    def below(self, path: str) -> list[str]:
        """The cgroups directly below; empty also if it is gone."""

    def probe(self) -> AbstractContextManager[str]:
        """A cgroup of our own without processes, for a trial."""

    def forget(self, leaf: Leaf) -> None:
        """Called when the limits of an ended container are cleared."""


class CgroupLeaves:
    """Those of a kubelet, in a mounted hierarchy of cgroup v2."""

    def __init__(self, root: Path) -> None:
        """`root`: where it is mounted."""
        self._root = root

    def all(self) -> list[Leaf]:
        return [leaf for top in self.tops() for leaf in _found(top, "", 0)]

    def tops(self) -> list[str]:
        found = _directories(str(self._root))
        return [each for each in found if os.path.basename(each).startswith(_TOPS)]

    def below(self, path: str) -> list[str]:
        return _directories(path)

    @contextlib.contextmanager
    def probe(self) -> Iterator[str]:
        path = tempfile.mkdtemp(prefix=_PROBE, dir=self._root)
        try:
            yield path
        finally:
            os.rmdir(path)  # the files in a cgroup go with it, and cannot be removed

    def forget(self, leaf: Leaf) -> None:
        """The container runtime removes the cgroup."""


def _found(path: str, pod: str, depth: int) -> Iterator[Leaf]:
    for each in _directories(path):
        name = os.path.basename(each)
        if pod:
            if container := _CONTAINER.match(name):
                yield Leaf(pod, container[1], each)
        elif named := _POD.search(name):
            yield from _found(each, named[1].replace("_", "-"), depth + 1)
        elif depth < _DEEPEST:
            yield from _found(each, "", depth + 1)


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [each.path for each in entries if each.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
        return []


class ContainerLeaves:
    """Those of a simulated node, whose containers have no cgroups: a directory for each of them
    (`simdriver.NodeFiles.container`)."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def all(self) -> list[Leaf]:
        pods = _directories(str(self._root))
        return [
            Leaf(os.path.basename(pod), os.path.basename(each), each)
            for pod in pods
            for each in _directories(pod)
        ]

    def tops(self) -> list[str]:
        """The simulated driver adds up nothing."""
        return []

    def below(self, path: str) -> list[str]:
        return _directories(path)

    @contextlib.contextmanager
    def probe(self) -> Iterator[str]:
        # No directory is needed: nobody runs there.
        yield str(self._root / "gpupool" / "probe")

    def forget(self, leaf: Leaf) -> None:
        shutil.rmtree(leaf.path, ignore_errors=True)
        with contextlib.suppress(OSError):  # the pod has other containers
            os.rmdir(os.path.dirname(leaf.path))
