"""A real Kubernetes with real nodes, on one machine: `with Kubernetes(nodes=3) as kubernetes`."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from testbed import build, debian, images
from testbed.containerd_runtime import Containerd
from testbed.controlplane import ControlPlane
from testbed.node import Node
from testbed.node_runtime import NodeRuntime

CANNOT = 77  # an exit code that no broken program has
_LOCK = "\0gpupool-testbed"  # a name in the machine's network, not a file


class CannotRun(RuntimeError):
    """This machine or user cannot; the text says what is wanted."""


def check() -> None:
    """Raises CannotRun."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise CannotRun("a real kubelet: wanted Linux and root, found neither or only one of them")
    for command in ("unshare", "nsenter", "pkill"):
        if shutil.which(command) is None:
            raise CannotRun(f"a real kubelet: wanted the command {command}, found none")
    missing = [name for name in build.PROGRAMS if build.find(name) is None]
    if missing and shutil.which("go") is None:
        raise CannotRun(f"a real kubelet: wanted go to build {', '.join(missing)}, found none")
    if not debian.is_possible():
        raise CannotRun("a real kubelet: wanted apt-get for runc and busybox, found none")


def hold_addresses(name: str = _LOCK) -> socket.socket:
    """Nodes have fixed addresses, so a machine has one test-bed with nodes at a time; the socket
    says so until it is closed, or its process ends. Raises CannotRun."""
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(name)
    except OSError as error:
        lock.close()
        raise CannotRun(
            f"a real kubelet: wanted the addresses 127.0.0.2 and following, found another test-bed "
            f"on them{_holder(name)}. Wait for its end, or end it"
        ) from error
    lock.listen()
    return lock


def _holder(name: str) -> str:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.connect(name)
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return f" (process {struct.unpack('3i', told)[0]})"
    return ""


class Kubernetes:
    """Control plane, controllers, and nodes 127.0.0.2, 127.0.0.3 ... that start together."""

    def __init__(
        self,
        *,
        nodes: int = 1,
        labels: Mapping[str, str] | None = None,
        scheduler: bool = True,
        flags: Mapping[str, Sequence[str]] | None = None,
        images: Callable[[Path], None] | None = None,
        runtimes: Sequence[NodeRuntime] = (),
    ) -> None:
        """`images` writes the archive of all that pods may use; without it, busybox alone.
        `runtimes`: of the first nodes; the others have containerd 1.7 without NVIDIA's runtime."""
        names = [f"127.0.0.{number + 2}" for number in range(nodes)]
        self.plane = ControlPlane(
            controllers=True,
            scheduler=scheduler,
            users={f"system:node:{name}": "system:nodes" for name in names},
            flags=flags,
        )
        self._folder: Path | None = None
        self._lock: socket.socket | None = None
        self._names = names
        self._labels = labels
        self._images = images or write_small_images
        self._runtimes = (*runtimes, *[Containerd()] * (nodes - len(runtimes)))
        self.nodes: list[Node] = []

    def __enter__(self) -> Kubernetes:
        check()
        self._lock = hold_addresses()
        self._folder = Path(tempfile.mkdtemp(prefix="gpupool-nodes-"))
        try:
            self.plane.__enter__()
            archive = self._folder / "images.tar"
            self._images(archive)
            for name, runtime in zip(self._names, self._runtimes, strict=True):
                node = Node(name, self._folder / name, self._labels, runtime)
                self.nodes.append(node)
                config = self.plane.kubeconfig_of(f"system:node:{name}")
                node.start(config, self.plane.ca_file, archive)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
        self.plane.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()  # last: now the addresses are free


def write_small_images(target: Path) -> None:
    layers = {"busybox": images.busybox_layer(debian.ensure("busybox"))}
    images.write_archive(target, layers, images.small_images())


def main(arguments: Sequence[str] | None = None) -> int:
    """CANNOT where this machine or user cannot."""
    parser = argparse.ArgumentParser(description="Run a real Kubernetes until interrupted.")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="only say whether it can run here")
    options = parser.parse_args(arguments)
    asked_to_stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.set())
    try:
        if options.check:
            check()
            return 0
        with Kubernetes(nodes=options.nodes) as kubernetes:
            print(f"export KUBECONFIG={kubernetes.plane.kubeconfig}", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                asked_to_stop.wait()
    except (CannotRun, build.BuildError) as error:
        print(error, file=sys.stderr)
        return CANNOT
    return 0


if __name__ == "__main__":
    sys.exit(main())
