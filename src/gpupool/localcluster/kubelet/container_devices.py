"""What a container gets of its node's devices: variables and files, out of Allocate's answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpupool.contract.names import LIMITER_DIRECTORY, RESOURCE_GPU, RESOURCE_GPU_MEM
from gpupool.contract.objects import Obj
from gpupool.kubeletapi.errors import KubeletApiError
from gpupool.kubeletapi.messages import Mount
from gpupool.localcluster.kubelet.container_files import PACKAGE
from gpupool.localcluster.kubelet.devices.all_devices import Devices
from gpupool.localcluster.kubelet.environment import BadConfig
from gpupool.localcluster.kubelet.node_files import node_disk
from gpupool.localcluster.kubelet.node_gpus import NOTHING_SHOWN, NodeGpus, Shown
from gpupool.localcluster.kubelet.sandbox import Bind
from gpupool.localcluster.kubelet.state import Pod


@dataclass(frozen=True, slots=True)
class ContainerDevices:
    devices: Devices
    gpus: NodeGpus
    allowed: tuple[Path, ...]  # the parts of this machine that pods may see

    def variables(self, pod: Pod, container: str) -> dict[str, str]:
        return dict(self.devices.response(pod.node, pod.uid, container).envs)

    def binds(self, pod: Pod, container: str) -> tuple[Bind, ...]:
        """Raises BadConfig."""
        mounts = self.devices.response(pod.node, pod.uid, container).mounts
        return tuple(self._bind(pod.node, mount) for mount in mounts)

    def shown(self, pod: Pod, spec: Obj, variables: dict[str, str], *, own_view: bool) -> Shown:
        """Cards are for containers that ask for some: a variable alone, which anybody can set,
        does not do. But for privileged ones, such as monitors, it does."""
        limits = (spec.get("resources") or {}).get("limits") or {}
        asks = RESOURCE_GPU in limits or RESOURCE_GPU_MEM in limits
        if not asks and not (spec.get("securityContext") or {}).get("privileged"):
            return NOTHING_SHOWN
        mounts = self.devices.response(pod.node, pod.uid, spec["name"]).mounts
        limited = any(mount.container_path == LIMITER_DIRECTORY for mount in mounts)
        return self.gpus.shown(pod.node, variables, own_view=own_view, limited=limited)

    async def pre_start(self, pod: Pod, container: str) -> None:
        """Raises BadConfig."""
        try:
            await self.devices.pre_start(pod.node, pod.uid, container)
        except KubeletApiError as error:
            raise BadConfig(str(error)) from error

    def _bind(self, node: str, mount: Mount) -> Bind:
        """The host of a plugin is the node: its own disk goes before this machine's."""
        disk = node_disk(self.gpus.directory, node)
        on_disk = (disk / mount.host_path.strip("/")).resolve()
        if on_disk.exists() and on_disk.is_relative_to(disk.resolve()):
            return Bind(str(on_disk), mount.container_path, mount.read_only)
        path = Path(mount.host_path).resolve()
        if not path.exists() or not _is_below(path, (disk, PACKAGE, *self.allowed)):
            raise BadConfig(f"mount of a device plugin: {mount.host_path} is not on node {node}")
        read_only = mount.read_only or path.is_relative_to(PACKAGE)
        return Bind(str(path), mount.container_path, read_only)


def _is_below(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place.resolve()) for place in places)
