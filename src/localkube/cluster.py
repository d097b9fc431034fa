"""Cluster: a cluster for the length of a `with` block, in a thread of this process.

    from localkube import Cluster

    with Cluster(nodes=3) as cluster:
        print(cluster.kubectl("get", "nodes"))

It listens on the loopback interface alone. Its directory goes with it unless it was given one.
"""

import asyncio
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import uvloop

from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.errors import AlreadyExists
from kubeclient.https import connected
from kubeclient.objects import Obj
from kubeclient.resources import NODES
from localkube.apiserver.server import raise_open_files_limit
from localkube.assembly import (
    ClusterSettings,
    Extension,
    ProgramFails,
    RunningCluster,
    run_cluster,
)
from localkube.data_directory import Lock, make_data_directory
from localkube.health import named
from localkube.kubectl import run_kubectl
from localkube.names import Names
from localkube.nodes import node_object, numbered_machine, says_ready
from localkube.removal import remove_tree
from localkube.supervision import first_cause

# Longer than _READY_LIMIT_S, so that the error that names the nodes comes first.
_START_LIMIT_S = 60.0
_READY_LIMIT_S = 30.0
_LOOK_AGAIN_S = 0.05
_NAME = "local"


class ClusterFailed(Exception):
    """The cluster did not start, or its nodes did not get ready in time."""


class Cluster:
    """A cluster with `nodes` nodes: `with Cluster() as cluster`, or `start` and `close`.

    `directory`: where it keeps its data, which then outlives it; without one, a temporary
    directory. `extension`: what a product adds (EXTENDING.md). `start` raises the limit of open
    files of this process, because each node needs a few.
    """

    def __init__(
        self,
        *,
        nodes: int = 1,
        directory: Path | None = None,
        port: int = 0,
        extension: Extension | None = None,
    ) -> None:
        if nodes < 0:
            raise ValueError(f"nodes: wanted 0 or more, found {nodes}")
        if not 0 <= port <= 65535:
            raise ValueError(f"port: wanted a number from 0 to 65535, found {port}")
        self._nodes = nodes
        self._given = directory
        self._wanted_port = port
        self._extension = extension or Extension()
        self._directory = Path()
        self._temporary: Path | None = None  # what `close` deletes
        self._running: _Thread | None = None

    @property
    def directory(self) -> Path:
        return self._directory

    @property
    def kubeconfig(self) -> Path:
        return self._directory / "kubeconfig"

    @property
    def port(self) -> int:
        return self._thread().cluster.port

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Kube]:
        """A client with the administrator's rights, for the event loop that asks for it. Raises
        ClusterFailed when the cluster does not run."""
        self._thread()
        access = await find_access(os.environ, kubeconfig=str(self.kubeconfig), context="")
        async with connected(access, "localkube") as kube:
            yield kube

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints. Raises CalledProcessError, with stderr, when it fails, and
        ClusterFailed when the cluster does not run."""
        self._thread()
        return run_kubectl(self.kubeconfig, *arguments, stdin=stdin)

    def start(self) -> Self:
        """Returns once every node is ready. Raises ClusterFailed, DataDirectoryError."""
        if self._running is not None:
            raise ClusterFailed("The cluster runs already.")
        raise_open_files_limit()
        directory = self._given
        if directory is None:
            directory = self._temporary = Path(tempfile.mkdtemp(prefix="localkube-"))
        try:
            self._directory = make_data_directory(directory)
            settings = ClusterSettings(_NAME, self._directory, self._wanted_port)
            self._running = _Thread(settings, with_nodes(self._extension, self._nodes))
            self._running.start()
        except BaseException:
            self._end()
            raise
        return self

    def close(self) -> None:
        """Stops the cluster, and deletes its directory unless that was given. Raises ClusterFailed
        when the cluster had failed in the meantime, or when one of its programs was failing."""
        error = self._end()
        if error is not None:
            raise ClusterFailed(f"The cluster failed while it ran: {error}") from error

    def _end(self) -> BaseException | None:
        """What the cluster failed of, if it did."""
        running, self._running = self._running, None
        temporary, self._temporary = self._temporary, None
        try:
            return None if running is None else running.stop()
        finally:
            if temporary is not None:
                remove_tree(temporary)

    def _thread(self) -> "_Thread":
        """Raises ClusterFailed. Asked before the kubeconfig is used: without a cluster, that could
        be a file of somebody else, and a command meant for this cluster would reach another."""
        if self._running is None:
            raise ClusterFailed("The cluster does not run.")
        return self._running

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except ClusterFailed as failed:
            if error is None:
                raise
            error.add_note(str(failed))


def with_nodes(given: Extension, count: int) -> Extension:
    """The extension, with so many nodes; the cluster is ready when all its nodes are."""

    async def set_up(cluster: RunningCluster) -> None:
        kube = cluster.admin()
        for number in range(count):
            # A directory that was used before has its nodes already.
            with contextlib.suppress(AlreadyExists):
                await kube.create(NODES, node_object(numbered_machine(number, given.names)))
        await given.set_up(cluster)

    async def ready(cluster: RunningCluster) -> None:
        await _wait_for_nodes(cluster, given.names)
        await given.ready(cluster)

    return replace(given, set_up=set_up, ready=ready)


async def _wait_for_nodes(cluster: RunningCluster, names: Names) -> None:
    kube = cluster.admin()
    deadline = time.monotonic() + _READY_LIMIT_S
    while True:
        nodes = (await kube.list(NODES)).items
        waiting = [
            node["metadata"]["name"]
            for node in nodes
            if _has_kubelet(node, names)
            and not _is_ready(node, cluster)
            and not cluster.health.is_beyond(named(node | {"kind": "Node"}))
        ]
        if not waiting:
            return
        if time.monotonic() > deadline:
            listed = ", ".join(waiting)
            raise ClusterFailed(f"Nodes are not ready after {_READY_LIMIT_S:.0f} s: {listed}.")
        await asyncio.sleep(_LOOK_AGAIN_S)


def _has_kubelet(node: Obj, names: Names) -> bool:
    """Users may create other nodes, and stop kubelets: nobody makes those nodes ready."""
    metadata = node["metadata"]
    ours = names.node_label in (metadata.get("labels") or {})
    return ours and (metadata.get("annotations") or {}).get(names.kubelet_annotation) != "stopped"


def _is_ready(node: Obj, cluster: RunningCluster) -> bool:
    """The status alone does not tell: after a restart it is from before."""
    if cluster.fleet.streams(node["metadata"]["name"]) is None:
        return False
    return says_ready(node)


class _Thread:
    """Runs a cluster on an event loop of its own."""

    def __init__(self, settings: ClusterSettings, extension: Extension) -> None:
        self._settings = settings
        self._extension = extension
        self._started = threading.Event()
        self._stopping = threading.Event()  # `stop` was called, perhaps before there was a loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._cluster: RunningCluster | None = None
        self._thread = threading.Thread(target=self._run, name="localkube", daemon=True)

    @property
    def cluster(self) -> RunningCluster:
        assert self._cluster is not None  # `start` has returned
        return self._cluster

    def start(self) -> None:
        self._thread.start()
        if not self._started.wait(_START_LIMIT_S):
            raise ClusterFailed(f"The cluster did not start within {_START_LIMIT_S:.0f} s.")
        if self._error is not None:
            raise ClusterFailed(f"The cluster did not start: {self._error}") from self._error

    def stop(self) -> BaseException | None:
        """Returns when the thread has ended, with the error that ended it, if one did, or with what
        was failing."""
        failing = [] if self._cluster is None else self._cluster.health.failing()
        self._stopping.set()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # the loop closed just now
                loop.call_soon_threadsafe(stop.set)
        if self._thread.ident is not None:  # it was started
            self._thread.join()
        if self._error is None and failing:
            return ProgramFails("; ".join(f"{c.name} failed: {c.failure}" for c in failing))
        return self._error

    def _run(self) -> None:
        try:
            with (
                Lock(self._settings.directory),
                asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
            ):
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001  # told to the thread that waits
            self._error = first_cause(error)
        finally:
            # After a failure, too: `start` waits for it and then reads the error.
            self._started.set()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        # In this order: `stop` sets the flag and then reads `_stop`, so that one of the two threads
        # sees what the other has set.
        if self._stopping.is_set():
            return

        def ready(cluster: RunningCluster) -> None:
            self._cluster = cluster
            self._started.set()

        await run_cluster(
            self._settings, self._extension, ready=ready, stop=self._stop, insists=True
        )
