"""Attempts: pods leave one node in thought and come back, and each time: does a pod fit there?

    InTrial     asks all filters, in a trial of the cluster
    ByNumbers   adds up what is left of one node: for pods and nodes where only room decides

Both give the same answers where both may be used. Preemption asks for hundreds of nodes, and a
filter takes as long for one node as for a thousand.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.card_holds import CardHold
from gpupool.engine.cards import allocation_on, chooses_cards, closed_cards
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import MOST, Bools
from gpupool.engine.filters import FILTERS, resources
from gpupool.engine.filters.gpus import GPUS, allows_mode
from gpupool.engine.filters.host_ports import HOST_PORTS
from gpupool.engine.filters.resources import RESOURCES
from gpupool.engine.filters.spread import SPREAD
from gpupool.engine.kinds import ask_of
from gpupool.engine.node_state import Held, NodeState
from gpupool.engine.policies.policy import Ints, Policy
from gpupool.engine.trial import Trial

# The filters before these read the node alone, and have not refused it.
_AS_PODS_LEAVE = FILTERS[FILTERS.index(HOST_PORTS) :]


class Attempt(Protocol):
    def leave(self, pods: Sequence[Held]) -> bool:
        """Whether the pod fits when these have left as well."""

    def comes_back(self, gone: Held) -> bool:
        """Puts it back, unless the pod would not fit any more."""


class InTrial:
    def __init__(
        self,
        cluster: ClusterModel,
        pod: PodRequest,
        policy: Policy,
        state: NodeState,
        trying: Trial,
    ) -> None:
        self._cluster, self._pod, self._policy = cluster, pod, policy
        self._state, self._trying = state, trying

    def leave(self, pods: Sequence[Held]) -> bool:
        for held in pods:
            self._trying.release(held.pod.uid)
        return self._fits()

    def comes_back(self, gone: Held) -> bool:
        if self._needs_cards_of(gone):
            return False
        self._trying.hold(gone.pod, gone.node, gone.allocation)
        if self._fits():
            return True
        self._trying.release(gone.pod.uid)
        return False

    def _fits(self) -> bool:
        node = np.array([self._state.index], dtype=np.intp)
        if not all(bool(f.passes(self._pod, self._cluster, node)[0]) for f in _AS_PODS_LEAVE):
            return False
        closed = closed_cards(self._pod, self._cluster, self._state)
        ask = ask_of(self._pod)
        found = allocation_on(self._cluster, self._pod, self._state, self._policy, ask, closed)
        return found is not None

    def _needs_cards_of(self, gone: Held) -> bool:
        """Whether too few whole cards were left if it came back. A quick no."""
        if len(self._pod.gpus) != 1 or not self._pod.gpus[0].whole:
            return False
        free = {each.card.uuid for each in self._state.cards if each.is_untouched}
        return len(free.difference(hold.uuid for hold in gone.cards)) < self._pod.gpus[0].whole


def only_room_decides(pod: PodRequest, cluster: ClusterModel, nodes: Ints, even: Bools) -> Bools:
    """The nodes on which the pod fits, if some pods left, as soon as there is room for it.

    All other filters let them pass now, and still do when pods have left; except a spread that
    counts one of those. `even`: the nodes that pass by spread.
    """
    # For one container with GPUs it is enough to count cards. Affinity may be to a pod that leaves.
    if len(pod.gpus) > 1 or chooses_cards(pod) or pod.affinity:
        return np.zeros(len(nodes), dtype=np.bool_)
    found: Bools = even & allows_mode(pod, cluster, nodes)
    for filter_ in _AS_PODS_LEAVE:
        if filter_ not in (RESOURCES, GPUS, SPREAD):
            found &= filter_.passes(pod, cluster, nodes)
    return found


class ByNumbers:
    """For nodes of `only_room_decides`."""

    def __init__(self, pod: PodRequest, state: NodeState) -> None:
        self._pod, self._state = pod, state
        self._wanted = resources.wanted(pod)
        offered, held = state.node.allocatable, state.held
        self._left = {name: offered.get(name, 0) - held.get(name, 0) for name in self._wanted}
        self._cards: list[list[int]] = []
        if pod.gpus:
            self._cards = [
                [card.units, card.percent, card.wholes + card.closed] for card in state.cards
            ]

    def leave(self, pods: Sequence[Held]) -> bool:
        for held in pods:
            self._count(held, -1)
        return self._fits()

    def comes_back(self, gone: Held) -> bool:
        self._count(gone, 1)
        if self._fits():
            return True
        self._count(gone, -1)
        return False

    def _count(self, held: Held, sign: int) -> None:
        asked = held.pod.resources
        for name in self._left:
            self._left[name] -= sign * asked.get(name, 0)
        if self._cards:
            for hold in held.cards:
                self._count_card(hold, sign)

    def _count_card(self, hold: CardHold, sign: int) -> None:
        row = self._state.card_rows.get(hold.uuid)
        if row is None:  # the card is gone
            return
        card = self._cards[row]
        card[2] += sign * (hold.whole + hold.possible)
        if not hold.whole:
            card[0] += sign * hold.units
            card[1] += sign * hold.percent

    def _fits(self) -> bool:
        for name, amount in self._wanted.items():
            if min(self._left[name], MOST) < amount:
                return False
        if not self._pod.gpus:
            return True
        ask, fitting = self._pod.gpus[0], 0
        for card, (units, percent, closers) in zip(self._state.cards, self._cards, strict=True):
            free, compute = card.left(units, percent, closers)
            if ask.whole:
                fitting += card.is_all(free, compute)
            else:
                fitting += free >= ask.units and compute >= ask.percent
        return fitting >= (ask.whole or ask.cards)
