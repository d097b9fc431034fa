"""Cards: whole cards must be untouched, and each share needs room on one card.

For one container with GPUs this is exact. Several containers may each fit alone, but not together:
for such pods `cards.py` decides.
"""

import numpy as np

from gpupool.core.gpu import GpuAsk, GpuMode
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools, Columns
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.node_state import MODES
from gpupool.engine.open_cards import open_cards, untouched_cards
from gpupool.engine.policies.policy import Ints, of_nodes

NO_INVENTORY = "node(s) had no GPU inventory"
ONLY_SHARED = "node(s) only shared their GPUs by memory"
ONLY_WHOLE = "node(s) only gave out whole GPUs"
NOT_CHOSEN = "node(s) had too few GPUs of the models or uuids that the pod accepts"
NO_WHOLE = "Insufficient nvidia.com/gpu"
NO_MEMORY = "Insufficient GPU Memory in one device"
NO_COMPUTE = "Insufficient GPU compute in one device"
_WHOLE, _SHARED = MODES.index(GpuMode.WHOLE), MODES.index(GpuMode.SHARED)


def allows_mode(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    """Whether the nodes give out their cards whole, or shared, as the pod asks."""
    mode = cluster.columns.mode[nodes]
    allowed = np.ones(len(nodes), dtype=np.bool_)
    if any(ask.whole for ask in pod.gpus):
        allowed &= mode != _SHARED
    if any(ask.units for ask in pod.gpus):
        allowed &= mode != _WHOLE
    return allowed


def has_cards(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    columns = cluster.columns
    choice = open_cards(pod.card_choice, columns, nodes) if pod.card_choice else None
    fits = has_wholes(pod, columns, nodes, choice)
    for ask in pod.gpus:
        if ask.units:
            fits &= has_shares(ask, columns, nodes, choice)
    return fits


def has_wholes(pod: PodRequest, columns: Columns, nodes: Ints, choice: Bools | None) -> Bools:
    if choice is None:
        return np.asarray(columns.whole_free[nodes] >= whole_cards(pod))
    untouched = (untouched_cards(columns, nodes) & choice).sum(axis=0)
    return np.asarray(untouched >= whole_cards(pod))


def whole_cards(pod: PodRequest) -> int:
    """Whole cards that are needed at the same time: init containers run alone."""
    together = sum(ask.whole for ask in pod.gpus if not ask.is_init)
    return max([together, *(ask.whole for ask in pod.gpus if ask.is_init)])


def has_shares(ask: GpuAsk, columns: Columns, nodes: Ints, choice: Bools | None = None) -> Bools:
    """`choice`: the cards that the pod accepts; None: all."""
    if ask.cards == 1 and not ask.percent and choice is None:
        return np.asarray(columns.largest_free[nodes] >= ask.units)
    cards = of_nodes(columns.card_free, nodes) >= ask.units
    if ask.percent:
        cards &= of_nodes(columns.card_compute, nodes) >= ask.percent
    if choice is not None:
        cards &= choice
    return np.asarray(cards.sum(axis=0) >= ask.cards)


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    if not pod.gpus:
        return np.ones(len(nodes), dtype=np.bool_)
    return allows_mode(pod, cluster, nodes) & has_cards(pod, cluster, nodes)


def refusals(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> list[Refused]:
    equipped = cluster.columns.has_cards[nodes]
    found = [Refused(NO_INVENTORY, nodes[~equipped], False)]
    nodes = nodes[equipped]
    allowed = allows_mode(pod, cluster, nodes)
    mode = cluster.columns.mode[nodes]
    found.append(Refused(ONLY_SHARED, nodes[~allowed & (mode == _SHARED)], False))
    found.append(Refused(ONLY_WHOLE, nodes[~allowed & (mode == _WHOLE)], False))
    nodes = nodes[allowed]
    choice = None
    if pod.card_choice:
        choice = open_cards(pod.card_choice, cluster.columns, nodes)
        enough = choice.sum(axis=0) >= most_cards(pod)
        # Also after all pods have left, the node has too few of these cards.
        found.append(Refused(NOT_CHOSEN, nodes[~enough], False))
        nodes, choice = nodes[enough], choice[:, enough]
    enough = has_wholes(pod, cluster.columns, nodes, choice)
    found.append(Refused(NO_WHOLE, nodes[~enough], True))
    for ask in pod.gpus:
        if ask.units and len(nodes):
            found += _share_refusals(ask, cluster, nodes, choice)
    return [refused for refused in found if len(refused.nodes)]


def most_cards(pod: PodRequest) -> int:
    """The number of different cards that the pod needs at least."""
    return max([whole_cards(pod), *(ask.cards for ask in pod.gpus if ask.units)])


def _share_refusals(
    ask: GpuAsk, cluster: ClusterModel, nodes: Ints, choice: Bools | None
) -> list[Refused]:
    """Missing compute is a reason only where there is enough memory."""
    free = cluster.columns.card_free[:, nodes] >= ask.units
    roomy = (free if choice is None else free & choice).sum(axis=0) >= ask.cards
    fits = has_shares(ask, cluster.columns, nodes, choice)
    return [
        Refused(no_memory(ask), nodes[~roomy], True),
        Refused(_on_cards(NO_COMPUTE, ask), nodes[roomy & ~fits], True),
    ]


def no_memory(ask: GpuAsk) -> str:
    return _on_cards(NO_MEMORY, ask)


def _on_cards(reason: str, ask: GpuAsk) -> str:
    return reason if ask.cards == 1 else reason.replace("one device", f"{ask.cards} devices")


GPUS = Filter(passes, refusals)
