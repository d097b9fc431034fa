"""Where more is asked for than fits, pods leave the last places to larger pods.

A place is a node with as many untouched cards as a large pod asks for. Small pods find room
whenever one of them ends, large ones only where nobody took a first card. If a small pod takes it
because nothing else is free at the moment, the place is lost for as long as that pod runs, and soon
all of them are. It would have been idle for a short time only, until the next large pod comes:
measured in docs/packing.md.

A pod of two or four cards breaks a place for eight as well, and as places never come together again
by themselves, all places for eight would go in the end. It takes one only while the pods of its
size get in less often than those that need the place.

A place is left alone for a limited time after a pod has ended there (`FreedNodes`): whoever looks
at an old one sees that no large pod came.
"""

from collections.abc import Sequence
from math import inf

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import CPU, MEMORY, MIB_SHIFT, WHOLE_FREE, Columns
from gpupool.engine.decide import Placement, depends_on_other_pods, policy_for
from gpupool.engine.kinds import ask_of
from gpupool.engine.node_state import NodeState
from gpupool.engine.policies.places import MOST_CARDS, Place, Room
from gpupool.engine.policies.policy import WHOLE, Policy
from gpupool.engine.verdicts import verdict_of

LEFT_S = 1800.0
# In thousandths of cards, by a pod of one. With half as much, more places are kept, and 0.3 % more
# of all cards are idle (docs/packing.md).
_LEAST_LOSS = 4 * WHOLE


class FreedNodes:
    """Nodes on which a pod has ended: until when places there are left to larger pods."""

    def __init__(self) -> None:
        self._ended_s: dict[str, float] = {}

    def ended(self, node: str, now_s: float) -> None:
        # Pods that come and go beside a place must not keep it for ever.
        if now_s >= self.for_all_s(node):
            self._ended_s[node] = now_s

    def for_all_s(self, node: str) -> float:
        return self._ended_s.get(node, -inf) + LEFT_S

    def forget_old(self, now_s: float) -> None:
        self._ended_s = {n: at_s for n, at_s in self._ended_s.items() if now_s < at_s + LEFT_S}


def is_last_place(cluster: ClusterModel, pod: PodRequest, policy: Policy, found: Placement) -> bool:
    """Whether the pod should wait for another node than the one that was found for it."""
    prices, state = policy_for(pod, policy).prices, cluster.state(found.node)
    if prices is None or prices.places is None or state is None:
        return False
    before, taken = room_of(cluster.columns, state), _untouched_among(state, found)
    # A pod that shares a card takes too little CPU to break a place, and would waste the card.
    if not before.untouched or (pod.gpus and not taken):
        return False
    machine = int(cluster.columns.machine[state.index])
    # A class may be newer than the prices.
    if machine >= len(prices.places.beside_small) or before.untouched > MOST_CARDS:
        return False
    after = before.after(counted(pod, taken, prices.places.needs[machine]))
    if prices.places.loss(machine, before, after) <= (0 if taken > 1 else _LEAST_LOSS):
        return False
    # It may have been taken for what the pod likes or is near to, where others have room as well.
    return not depends_on_other_pods(
        cluster, pod, verdict_of(cluster, pod, policy_for(pod, policy))
    )


def counted(pod: PodRequest, taken: int, sizes: Sequence[Place]) -> Place:
    """What the pod takes. A pod that takes a place of its own size takes no more than that, though
    half of these pods ask for more CPU: they leave nothing to one another.
    """
    ask = ask_of(pod)
    for cards, cpu, memory in sizes[1:]:
        if cards == taken:
            return Place(taken, min(cpu, ask.cpu_milli), min(memory, ask.memory_mib))
    return Place(taken, ask.cpu_milli, ask.memory_mib)


def room_of(columns: Columns, state: NodeState) -> Room:
    free, first = columns.cells.free, state.index * columns.cells.rows
    return Room(free[first + WHOLE_FREE], free[first + CPU], free[first + MEMORY] >> MIB_SHIFT)


def _untouched_among(state: NodeState, found: Placement) -> int:
    """How many of the cards nobody uses yet."""
    uuids = {share.uuid for gpus in found.allocation.containers for share in gpus.shares}
    return sum(state.cards[state.card_rows[uuid]].is_untouched for uuid in uuids)
