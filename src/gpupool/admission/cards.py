"""ClusterCards: what admission needs to know of the cluster's GPU nodes."""

from dataclasses import dataclass

from gpupool.contract.names import LABEL_NVIDIA_NAME, LABEL_NVIDIA_NAME_ALPHA
from gpupool.contract.nodes import node_of
from gpupool.contract.objects import Obj
from gpupool.core.gpu import MIB_PER_GIB, GpuMode


@dataclass(frozen=True, slots=True)
class NodeCards:
    largest_units: int  # of one card
    unit_mib: int
    is_shared: bool
    is_isolated: bool
    label: str = ""  # its cards' name, as a label value


@dataclass(frozen=True, slots=True)
class ClusterCards:
    largest_units: int = 0  # of one card that is shared; 0: there is none
    unit: str = "GiB"  # what one of them is
    has_isolated: bool = False
    has_unisolated: bool = False
    labels: frozenset[str] = frozenset()  # names of cards, as nodes carry them


def node_cards(node: Obj) -> NodeCards:
    found = node_of(node)
    cards = found.inventory.cards if found.inventory else ()
    labels = found.labels
    is_shared = found.gpu_mode is GpuMode.SHARED
    return NodeCards(
        largest_units=max((card.units for card in cards), default=0),
        unit_mib=cards[0].unit_mib if cards else MIB_PER_GIB,
        is_shared=is_shared,
        is_isolated=is_shared and found.isolates,
        label=labels.get(LABEL_NVIDIA_NAME_ALPHA) or labels.get(LABEL_NVIDIA_NAME) or "",
    )


def cluster_cards(nodes: list[NodeCards]) -> ClusterCards:
    shared = [node for node in nodes if node.is_shared]
    units, unit_mib = max(
        ((node.largest_units, node.unit_mib) for node in shared), default=(0, MIB_PER_GIB)
    )
    return ClusterCards(
        largest_units=units,
        unit=_UNITS.get(unit_mib) or f"units of {unit_mib} MiB",
        has_isolated=any(node.is_isolated for node in shared),
        has_unisolated=any(not node.is_isolated for node in shared),
        labels=frozenset(node.label for node in nodes if node.label),
    )


_UNITS = {MIB_PER_GIB: "GiB", 1: "MiB"}
