"""Holds that cannot be right: on nodes or cards that do not exist, or more than a node has.

Another scheduler may have done it, or a node lost capacity. This only reports; it releases nothing.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpupool.core.gpu import WHOLE_CARD_PERCENT
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.node_state import Held, NodeState


@dataclass(frozen=True, slots=True)
class Stray:
    """A hold on a node or card that does not exist."""

    uid: str
    pod: str  # namespace/name
    node: str
    what: str


@dataclass(frozen=True, slots=True)
class Excess:
    """More is held than there is."""

    node: str
    what: str  # a resource, or a card's uuid
    held: int
    there: int


def strays(cluster: ClusterModel) -> list[Stray]:
    return [stray for held in cluster.holds() for stray in _strays_of(cluster, held)]


def _strays_of(cluster: ClusterModel, held: Held) -> Iterator[Stray]:
    pod = held.pod
    name = f"{pod.namespace}/{pod.name}"
    state = cluster.state(held.node)
    if state is None:
        yield Stray(pod.uid, name, held.node, "the node is not there")
        return
    for card in held.cards:
        if card.uuid not in state.card_rows:
            yield Stray(pod.uid, name, held.node, f"card {card.uuid} is not there")


def excesses(cluster: ClusterModel) -> list[Excess]:
    nodes = (cluster.at(int(index)) for index in cluster.all_nodes())
    return [excess for state in nodes for excess in excesses_on(state)]


def excesses_on(state: NodeState) -> list[Excess]:
    """Without reservations: they overlap with pods that are about to leave."""
    name, offered = state.node.name, state.node.allocatable
    reserved = [held for held in state.pods.values() if held.reserved]
    sums = Counter(state.held)
    for kept in reserved:
        sums.subtract(kept.pod.resources)
    found = [
        Excess(name, what, held, offered.get(what, 0))
        for what, held in sums.items()
        if held > offered.get(what, 0)
    ]
    for card in state.cards:
        kept_here = [
            hold for kept in reserved for hold in kept.cards if hold.uuid == card.card.uuid
        ]
        shares = [hold for hold in kept_here if not hold.whole]
        wholes = card.wholes - (len(kept_here) - len(shares))
        held = card.units - sum(hold.units for hold in shares) + wholes * card.card.units
        percent = card.percent - sum(hold.percent for hold in shares)
        if held > card.card.units:
            found.append(Excess(name, card.card.uuid, held, card.card.units))
        elif percent > WHOLE_CARD_PERCENT:
            found.append(Excess(name, card.card.uuid, percent, WHOLE_CARD_PERCENT))
    return found
