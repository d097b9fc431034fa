"""NodeInfo: what a node offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpupool.core.gpu import CardPlacement, GpuMode, Inventory
from kubeclient.placement import Taint


@dataclass(frozen=True, slots=True)
class NodeInfo:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Mapping[str, int] = field(default_factory=dict)
    inventory: Inventory | None = None  # None: no agent has reported cards
    gpu_mode: GpuMode = GpuMode.ANY
    card_placement: CardPlacement | None = None
    isolates: bool = True  # whether the limiter enforces shares
    grants_unisolated: bool = False  # whether a container may ask to run without the limiter
    volume_limits: Mapping[str, int] = field(default_factory=dict)  # attached volumes, by driver
    problems: tuple[str, ...] = ()  # what of the node object could not be read
