"""The cards of simulated nodes, and how containers see them, as with NVIDIA's container runtime.

A container sees the driver of its node when NVIDIA_VISIBLE_DEVICES names cards, and then only those
cards: the simulated driver reads that variable itself. With this machine's own cards, the driver is
at its usual path, and CUDA_VISIBLE_DEVICES tells CUDA which cards to use.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpupool.agent.leaves import ContainerLeaves
from gpupool.agent.wall_plan import container_shares
from gpupool.agent.walls import WallRefused, Walls
from gpupool.contract.names import (
    ENV_VISIBLE_DEVICES,
    LIMITER_DIRECTORY,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    VISIBLE_DEVICES_NONE,
)
from gpupool.hardware.simdriver import NodeFiles, create_node, has_limits, link_state
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_state import SimdriverError, driver_of
from gpupool.hardware.simulated_limits import SimulatedLimits
from localkube.data_directory import pods_directory
from localkube.kubelet.node_files import node_hardware
from localkube.kubelet.node_hooks import Adjustment, StartingContainer
from localkube.kubelet.sandbox import Bind

log = logging.getLogger(__name__)

DRIVER = "/usr/local/nvidia"  # the driver's directory in a container with its own file system
_CUDA_DEVICES = "CUDA_VISIBLE_DEVICES"


def node_files(data_dir: Path, node: str) -> NodeFiles:
    """The simulated driver of a node of the cluster with that data directory."""
    return NodeFiles(node_hardware(pods_directory(data_dir), node))


@dataclass(frozen=True, slots=True)
class Cards:
    """The cards of one machine."""

    model: str
    memory_mib: int
    count: int
    driver: str = ""  # version of the simulated driver; empty: the usual one


@dataclass(frozen=True, slots=True)
class NodeGpus:
    directory: Path
    cards: Mapping[str, Cards]  # by instance type
    real: bool

    def node_added(self, node: str, instance_type: str) -> bool:
        """Makes the simulated driver of a node with cards, in its state after a boot: nothing runs
        on the cards. If that fails, the node has no cards, and its agent reports it."""
        if instance_type not in self.cards:
            return False
        if not self.real:
            self._make_driver(node, self.cards[instance_type])
        return True

    def _make_driver(self, node: str, cards: Cards) -> None:
        profile = card_profile(cards.model, cards.memory_mib)
        try:
            place = node_hardware(self.directory, node)
            create_node(place, node, [profile] * cards.count, driver_of(cards.driver))
        except (SimdriverError, OSError) as error:
            log.error("no simulated driver", extra={"node": node, "error": str(error)})

    def driver(self, node: str) -> NodeFiles | None:
        files = NodeFiles(node_hardware(self.directory, node))
        return None if self.real or not files.state.exists() else files

    def adjust(self, container: StartingContainer) -> Adjustment:
        """Shows cards to containers that ask for them. The variable alone is not enough, because
        anybody can set it; only for privileged containers, such as monitors, it is."""
        limits = (container.spec.get("resources") or {}).get("limits") or {}
        asks = RESOURCE_GPU in limits or RESOURCE_GPU_MEM in limits
        context = container.spec.get("securityContext") or {}
        wanted = container.variables.get(ENV_VISIBLE_DEVICES, "")
        if wanted in ("", VISIBLE_DEVICES_NONE) or not (asks or context.get("privileged")):
            return Adjustment()
        return self._show(container, wanted)

    def _show(self, container: StartingContainer, wanted: str) -> Adjustment:
        variables = container.variables
        if self.real:
            chosen = {} if wanted == "all" else {_CUDA_DEVICES: wanted}
            own = {**chosen, **_only(variables, _CUDA_DEVICES)}
            return Adjustment(own, device_files=_device_files())
        files = self.driver(container.node)
        if files is None:
            return Adjustment()
        if not container.own_view:
            return Adjustment(_found(variables, str(files.libraries), str(files.programs)))
        binds = (
            Bind(str(files.libraries), f"{DRIVER}/lib", True),
            Bind(str(files.programs), f"{DRIVER}/bin", True),
            # Writable: programs count their memory and hold their locks in this file.
            Bind(str(_state(container, files)), f"{DRIVER}/{files.state.name}"),
        )
        # A container with the limiter must find the limiter's library before the driver's.
        limited = any(m.container_path == LIMITER_DIRECTORY for m in container.plugin_mounts)
        libraries = _path((LIMITER_DIRECTORY if limited else None, f"{DRIVER}/lib"))
        return Adjustment(_found(variables, libraries, f"{DRIVER}/bin"), binds)


def _state(container: StartingContainer, files: NodeFiles) -> Path:
    """The state file as the container gets it. Where the driver holds shares itself, that is a link
    by which it knows the container, and the limits are in force before the program starts. Raises
    WallRefused: the container does not start."""
    uid = (container.pod.get("metadata") or {}).get("uid", "")
    if not uid or not container.id or not has_limits(files):
        return files.state
    link = link_state(files, uid, container.id)
    shares = container_shares(container.pod, container.spec["name"])
    try:
        if shares:
            node_walls(files).set_before_start(str(link.parent), shares)
    except WallRefused as error:
        raise WallRefused(
            f"the driver of node {container.node} does not hold it: {error}"
        ) from None
    return link


def node_walls(files: NodeFiles) -> Walls:
    """What sets limits of the simulated driver."""
    return Walls(SimulatedLimits(files.state), ContainerLeaves(files.containers))


def _device_files() -> tuple[str, ...]:
    """The device files of this machine's own cards, below /dev."""
    return tuple(sorted(name for name in os.listdir("/dev") if name.startswith("nvidia")))


def _found(variables: Mapping[str, str], libraries: str, programs: str) -> dict[str, str]:
    return {
        "LD_LIBRARY_PATH": _path((variables.get("LD_LIBRARY_PATH"), libraries)),
        "PATH": _path((programs, variables.get("PATH"))),
    }


def _path(places: Iterable[str | None]) -> str:
    return os.pathsep.join(place for place in places if place)


def _only(variables: Mapping[str, str], name: str) -> dict[str, str]:
    return {name: variables[name]} if name in variables else {}
