"""ClusterCards: what admission needs to know about the cluster's GPU nodes."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpupool.contract.names import LABEL_NVIDIA_NAME, LABEL_NVIDIA_NAME_ALPHA
from gpupool.core.gpu import MIB_PER_GIB, GpuMode, Wall
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from kubeclient.placement import selects_node

_UNITS = {MIB_PER_GIB: "GiB", 1: "MiB"}


@dataclass(frozen=True, slots=True)
class ClusterCards:
    largest_units: int = 0  # units of the largest shared card; 0: no card is shared
    unit: str = "GiB"  # what one unit of gpu-mem is
    shared: tuple[NodeInfo, ...] = ()  # the nodes that share their cards
    whole: tuple[NodeInfo, ...] = ()  # the nodes that give out whole cards
    labels: frozenset[str] = frozenset()  # names of cards, as in the labels of nodes
    resources: frozenset[str] = frozenset()  # what nodes offer to pods

    def leaves_open(self, pod: PodRequest) -> bool:
        """Whether the pod could run on a node with isolation and also on a node without."""
        found = set()
        for node in self.shared:
            if node.isolates not in found and selects_node(
                pod.node_selector, pod.node_terms, node.name, node.labels
            ):
                found.add(node.isolates)
            if len(found) > 1:
                return True
        return False

    def places(self, pod: PodRequest) -> list[NodeInfo]:
        """The nodes with cards that the pod may come to, by their labels."""
        nodes = self.shared if any(ask.units for ask in pod.gpus) else self.whole
        return [
            node
            for node in nodes
            if node.inventory is not None
            and node.inventory.cards
            and selects_node(pod.node_selector, pod.node_terms, node.name, node.labels)
        ]

    def driver_holds(self, pod: PodRequest) -> bool:
        """Whether the driver itself holds isolated shares on every node that the pod can run on."""
        found = [
            node.isolates and node.inventory is not None and node.inventory.wall is Wall.DRIVER
            for node in self.shared
            if selects_node(pod.node_selector, pod.node_terms, node.name, node.labels)
        ]
        return bool(found) and all(found)


def cluster_cards(nodes: Iterable[NodeInfo]) -> ClusterCards:
    known = list(nodes)
    shared = tuple(node for node in known if node.gpu_mode is GpuMode.SHARED)
    cards = [card for node in shared if node.inventory for card in node.inventory.cards]
    largest = max(cards, key=lambda card: card.units, default=None)
    unit_mib = largest.unit_mib if largest else MIB_PER_GIB
    return ClusterCards(
        largest_units=largest.units if largest else 0,
        unit=_UNITS.get(unit_mib) or f"units of {unit_mib} MiB",
        shared=shared,
        whole=tuple(node for node in known if node.gpu_mode is GpuMode.WHOLE and node.inventory),
        labels=frozenset(filter(None, map(_card_name, known))),
        resources=frozenset(name for node in known for name in node.allocatable),
    )


def _card_name(node: NodeInfo) -> str:
    return node.labels.get(LABEL_NVIDIA_NAME_ALPHA) or node.labels.get(LABEL_NVIDIA_NAME) or ""
