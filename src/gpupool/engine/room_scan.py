"""RoomScan: when each node may have room for pods, found for a few nodes at a time.

On a large cluster this is most of the work of `future_room.py`: it asks when every pod will end.
No decision is made meanwhile, so the scheduler does a part of it and then goes on with decisions.
Pods that come and go in between do no harm: these times are bounds that say which nodes are tried
first. Nodes that change themselves are looked at again in the end: one that was closed may be open.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.explain import refusals
from gpupool.engine.likeness import likeness
from gpupool.engine.node_state import CardState, Held, NodeState
from gpupool.engine.policies.policy import Policy

ALL = 2**62  # more pods than there are, and more units than any card has
_NEVER = float("inf")
# When a pod is expected to end, never before now, if it is one of so many that must have ended: the
# last of many ends later than each of them usually does.
Ends = Callable[[Held, int], float]
Promising = list[tuple[float, NodeState]]  # the earliest time for each node, soonest first


@dataclass(frozen=True, slots=True)
class Search:
    """`spoken_for`: uids of pods whose room is kept for somebody else already."""

    cluster: ClusterModel
    policy: Policy
    ends: Ends
    now_s: float
    spoken_for: Collection[str] = ()


class RoomScan:
    __slots__ = ("_found", "_left", "has_begun", "position")

    def __init__(self, cluster: ClusterModel, pods: Sequence[PodRequest]) -> None:
        # By likeness, with one of the pods that are alike, and by index of the node.
        self._found: dict[Hashable, tuple[PodRequest, dict[int, tuple[float, NodeState]]]] = {}
        self._left: list[tuple[Hashable, int]] = []  # indexes of nodes
        for pod in pods:
            alike = likeness(cluster, pod)
            if alike not in self._found:
                self._found[alike] = (pod, {})
                self._left += [(alike, index) for index in _curable(cluster, pod)]
        self._left.reverse()
        self.has_begun = False
        self.position = cluster.node_changes.position  # later changes of nodes were not seen

    @property
    def is_done(self) -> bool:
        """All nodes were looked at."""
        return not self._left

    def step(self, search: Search, most: int = ALL) -> bool:
        """Look at nodes with about so many pods. Whether all were looked at."""
        self.has_begun = True
        while most > 0 and (self._left or self._takes_changed(search.cluster)):
            alike, index = self._left.pop()
            if not search.cluster.columns.present[index]:
                continue
            pod, found = self._found[alike]
            state = search.cluster.at(index)
            most -= 1 + len(state.pods)
            earliest_s = earliest_of(search, pod, state)
            if earliest_s is not None:
                found[index] = (earliest_s, state)
        return not self._left

    def _takes_changed(self, cluster: ClusterModel) -> bool:
        """Whether there are nodes to be looked at again, because they changed meanwhile."""
        if self.position == cluster.node_changes.position:
            return False
        changed = cluster.node_changes.since(self.position)
        self.position = cluster.node_changes.position
        for alike, (pod, found) in self._found.items():
            again = set(found) if changed is None else set(changed)
            for index in again:
                found.pop(index, None)
            self._left += [
                (alike, index)
                for index in _curable(cluster, pod)
                if changed is None or index in again
            ]
        return bool(self._left)

    def found(self, cluster: ClusterModel) -> dict[Hashable, tuple[PodRequest, Promising]]:
        """Without nodes that are gone by now."""
        return {
            alike: (
                pod,
                sorted(
                    (n for n in nodes.values() if cluster.state(n[1].node.name) is n[1]),
                    key=by_time,
                ),
            )
            for alike, (pod, nodes) in self._found.items()
        }


def promising(search: Search, pod: PodRequest) -> Promising:
    """All nodes at once."""
    states = (search.cluster.at(index) for index in _curable(search.cluster, pod))
    times = ((earliest_of(search, pod, state), state) for state in states)
    return sorted(((time_s, state) for time_s, state in times if time_s is not None), key=by_time)


def by_time(each: tuple[float, NodeState]) -> tuple[float, int]:
    return (each[0], each[1].index)


def _curable(cluster: ClusterModel, pod: PodRequest) -> list[int]:
    """Nodes that may take the pod when pods have left."""
    incurable: set[int] = set()
    for refused in refusals(cluster, pod):
        if not refused.curable:
            incurable.update(refused.nodes.tolist())
    return [index for index in cluster.all_nodes().tolist() if index not in incurable]


def earliest_of(search: Search, pod: PodRequest, state: NodeState) -> float | None:
    """Not before this time enough is free of so many cards; None: never.

    A bound, so that few nodes are tried pod by pod. Of CPU it looks for pods without GPUs only.
    """
    leaves = [
        (
            _NEVER if held.reserved or held.pod.uid in search.spoken_for else search.ends(held, 1),
            held,
        )
        for held in state.pods.values()
    ]
    if not pod.gpus:
        missing = pod.resources.get("cpu", 0) + state.held.get("cpu", 0)
        freed = [(end_s, held.pod.resources.get("cpu", 0)) for end_s, held in leaves]
        found = _when(missing - state.node.allocatable.get("cpu", 0), freed, search.now_s)
        return found if found < _NEVER else None
    by_card: dict[str, list[tuple[float, int]]] = {}
    for end_s, held in leaves:
        for hold in held.cards:
            units = ALL if hold.whole or hold.possible else hold.units
            by_card.setdefault(hold.uuid, []).append((end_s, units))
    times = [
        _card_s(pod, card, by_card.get(card.card.uuid, []), search.now_s)
        for card in state.cards
        if card.usable
    ]
    wanted = cards_of(pod)
    found = sorted(times)[wanted - 1] if len(times) >= wanted else _NEVER
    return found if found < _NEVER else None


def _card_s(
    pod: PodRequest, card: CardState, freed: list[tuple[float, int]], now_s: float
) -> float:
    """When enough of the card is free for the smallest of the pod's shares."""
    if any(ask.whole for ask in pod.gpus):
        return max((end_s for end_s, _ in freed), default=now_s)
    return _when(min(ask.units for ask in pod.gpus) - card.free, freed, now_s)


def _when(missing: int, freed: list[tuple[float, int]], now_s: float) -> float:
    if missing <= 0:
        return now_s
    for end_s, amount in sorted(freed):
        missing -= amount
        if missing <= 0:
            return end_s
    return _NEVER


def cards_of(pod: PodRequest) -> int:
    wholes = sum(ask.whole for ask in pod.gpus if not ask.is_init)
    return wholes or max((ask.whole or ask.cards for ask in pod.gpus), default=0)
