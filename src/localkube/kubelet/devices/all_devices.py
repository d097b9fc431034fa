"""Devices: the devices of all nodes."""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kubeclient.kubeletapi.messages import ContainerAllocateResponse
from kubeclient.objects import Obj
from localkube.kubelet.beneath import directory_in, opened, path_of
from localkube.kubelet.devices.grants import NameOf, device_requests
from localkube.kubelet.devices.node_devices import NodeDevices, SocketDirectories
from localkube.kubelet.devices.stock import Counts
from localkube.kubelet.node_files import DEVICE_PLUGINS, POD_RESOURCES, node_disk
from localkube.new_tasks import add_task
from localkube.supervision import Supervisor

_NOTHING = ContainerAllocateResponse()


class Devices:
    def __init__(
        self,
        directory: Path,
        tasks: asyncio.TaskGroup,
        changed: Callable[[str], None],
        name_of: NameOf,
        supervisor: Supervisor,
    ) -> None:
        """`changed` is called with the name of a node whose counts may have changed."""
        self._supervisor = supervisor
        self._directory = directory
        self._tasks = tasks
        self._changed = changed
        self._name_of = name_of
        self._nodes: dict[str, NodeDevices] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def add(self, node: str) -> None:
        changed = partial(self._changed, node)
        disk = node_disk(self._directory, node)
        # By descriptor: pods with a hostPath can replace every directory on the node's disk.
        held = [_directory(disk, path) for path in (DEVICE_PLUGINS, POD_RESOURCES)]
        try:
            self._run(node, held, changed)
        except BaseException:
            _close(held)
            raise

    def _run(self, node: str, held: list[int], changed: Callable[[], None]) -> None:
        """Closes `held` when it ends."""
        directories = SocketDirectories(*(Path(path_of(descriptor)) for descriptor in held))
        devices = NodeDevices(directories, changed, self._name_of)
        # One node without devices, because of its directory or a socket, is no trouble of others.
        kept = self._supervisor.keep(f"kubelet/devices of {node}", devices.run)
        task = add_task(self._tasks, kept, "kubelet-devices")
        task.add_done_callback(lambda _: _close(held))
        self._nodes[node], self._running[node] = devices, task

    def remove(self, node: str) -> None:
        if self._nodes.pop(node, None) is not None:
            self._running.pop(node).cancel()

    def counts(self, node: str) -> Counts:
        devices = self._nodes.get(node)
        return Counts({}, {}) if devices is None else devices.counts()

    def manages(self, node: str, resource: str) -> bool:
        devices = self._nodes.get(node)
        return devices is not None and devices.manages(resource)

    async def admit(self, node: str, uid: str, obj: Obj) -> str | None:
        """Allocates the pod's devices; or returns why not, in the kubelet's words. Raises
        NotYet."""
        devices = self._nodes.get(node)
        return None if devices is None else await devices.admit(uid, device_requests(obj))

    def release(self, node: str, uid: str) -> None:
        if (devices := self._nodes.get(node)) is not None:
            devices.release(uid)

    def release_all_but(self, is_known: Callable[[str], bool]) -> None:
        for devices in self._nodes.values():
            devices.release_all_but(is_known)

    def response(self, node: str, uid: str, container: str) -> ContainerAllocateResponse:
        devices = self._nodes.get(node)
        return _NOTHING if devices is None else devices.response(uid, container)

    async def pre_start(self, node: str, uid: str, container: str) -> None:
        """Raises RpcFailed."""
        if (devices := self._nodes.get(node)) is not None:
            await devices.pre_start(uid, container)


def _directory(disk: Path, path: str) -> int:
    """One of the kubelet's own directories on the node's disk: made, also in place of a link."""
    found = os.open(disk, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in path.split("/"):
        with opened(found) as above:
            found = directory_in(above, name, 0o700)
    return found


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())
