"""Variables and files for a container, from the device plugins' answers to Allocate, and from the
node hooks."""

import contextlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from kubeclient.kubeletapi.errors import KubeletApiError
from kubeclient.kubeletapi.messages import Mount
from kubeclient.objects import Obj
from localkube.kubelet.beneath import open_beneath, open_trusted, opened
from localkube.kubelet.devices.all_devices import Devices
from localkube.kubelet.environment import BadConfig
from localkube.kubelet.node_files import node_disk, node_hardware
from localkube.kubelet.node_hooks import Adjustment, NodeHooks, StartingContainer
from localkube.kubelet.sandbox import Bind
from localkube.kubelet.state import Pod

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerDevices:
    devices: Devices
    hooks: NodeHooks
    directory: Path  # of the nodes' files
    packages: tuple[Path, ...]  # seen read-only
    allowed: tuple[Path, ...]  # the parts of this machine that pods may see

    def variables(self, pod: Pod, container: str) -> dict[str, str]:
        return dict(self.devices.response(pod.node, pod.uid, container).envs)

    def binds(self, pod: Pod, container: str) -> tuple[Bind, ...]:
        """Raises BadConfig."""
        mounts = self.devices.response(pod.node, pod.uid, container).mounts
        return tuple(self._bind(pod.node, mount) for mount in mounts)

    def adjustment(
        self, pod: Pod, obj: Obj, spec: Obj, variables: dict[str, str], *, own_view: bool
    ) -> Adjustment:
        """Raises BadConfig."""
        mounts = self.devices.response(pod.node, pod.uid, spec["name"]).mounts
        id = next((each.container_id for each in pod.containers if each.name == spec["name"]), "")
        container = StartingContainer(
            pod.node, spec, variables, tuple(mounts), own_view, obj, id or ""
        )
        try:
            return self.hooks.adjust(container)
        except Exception as error:  # a bug of the product: the pod's events tell, and it is retried
            log.exception("hook failed", extra={"node": pod.node, "pod": pod.name})
            raise BadConfig(f"node hook: {type(error).__name__}: {error}") from error

    async def pre_start(self, pod: Pod, container: str) -> None:
        """Raises BadConfig."""
        try:
            await self.devices.pre_start(pod.node, pod.uid, container)
        except KubeletApiError as error:
            raise BadConfig(str(error)) from error

    def _bind(self, node: str, mount: Mount) -> Bind:
        """For a plugin, the host is the node: a path is looked up on the node's disk first, then on
        this machine, where only the allowed parts may be mounted."""
        disk = node_disk(self.directory, node)
        inside = mount.host_path.strip("/")
        with contextlib.suppress(OSError), opened(open_trusted(disk)) as root:
            os.close(open_beneath(root, inside))
            return Bind(str(disk), mount.container_path, mount.read_only, (inside,))
        path = Path(os.path.realpath(mount.host_path))
        for root_path in (*self.packages, node_hardware(self.directory, node), *self.allowed):
            place = root_path.resolve()
            if path.exists() and path.is_relative_to(place):
                # Whoever may register a plugin must not change what the whole node runs.
                read_only = mount.read_only or root_path not in self.allowed
                below = str(path.relative_to(place))
                return Bind(str(place), mount.container_path, read_only, (below,))
        raise BadConfig(f"mount of a device plugin: {mount.host_path} is not on node {node}")
