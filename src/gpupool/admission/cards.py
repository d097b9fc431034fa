"""ClusterCards: what admission needs to know of the cluster's GPU nodes."""

from dataclasses import dataclass

from gpupool.contract.inventory import BadInventory, inventory_of
from gpupool.contract.names import (
    ANNOTATION_INVENTORY,
    LABEL_CGPU,
    LABEL_CGPU_NO_ISOLATION,
    LABEL_NVIDIA_NAME,
    LABEL_NVIDIA_NAME_ALPHA,
)
from gpupool.contract.objects import Obj


@dataclass(frozen=True, slots=True)
class NodeCards:
    largest_units: int  # of one card
    is_shared: bool
    is_isolated: bool
    label: str = ""  # its cards' name, as a label value


@dataclass(frozen=True, slots=True)
class ClusterCards:
    largest_units: int = 0  # of one card that is shared; 0: there is none
    has_isolated: bool = False
    has_unisolated: bool = False
    labels: frozenset[str] = frozenset()  # names of cards, as nodes carry them


def node_cards(node: Obj) -> NodeCards:
    metadata = node["metadata"]
    labels = metadata.get("labels") or {}
    text = (metadata.get("annotations") or {}).get(ANNOTATION_INVENTORY)
    try:
        cards = inventory_of(text).cards if text else ()
    except BadInventory:
        cards = ()
    is_shared = labels.get(LABEL_CGPU) == "true"
    return NodeCards(
        largest_units=max((card.units for card in cards), default=0),
        is_shared=is_shared,
        is_isolated=is_shared and labels.get(LABEL_CGPU_NO_ISOLATION) != "true",
        label=labels.get(LABEL_NVIDIA_NAME_ALPHA) or labels.get(LABEL_NVIDIA_NAME) or "",
    )


def cluster_cards(nodes: list[NodeCards]) -> ClusterCards:
    shared = [node for node in nodes if node.is_shared]
    return ClusterCards(
        largest_units=max((node.largest_units for node in shared), default=0),
        has_isolated=any(node.is_isolated for node in shared),
        has_unisolated=any(not node.is_isolated for node in shared),
        labels=frozenset(node.label for node in nodes if node.label),
    )
