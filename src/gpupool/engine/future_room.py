"""future_room: where a pod, or all pods of a gang, will fit soonest when pods end by themselves.

On each node that could help: its pods leave in the order of their expected ends until the new pod
fits; those that need not have left are put back. Among nodes the sum decides of what is lost: the
time that the new pod waits, for each of its cards, and the time that cards are kept free for it.

Nobody is evicted. Changes nothing.
"""

from bisect import insort
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpupool.core.card_choice import CardChoice
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide, decide_on
from gpupool.engine.explain import refusals
from gpupool.engine.gang import size_of
from gpupool.engine.likeness import likeness
from gpupool.engine.node_state import CardState, Held, NodeState
from gpupool.engine.policies.policy import Policy
from gpupool.engine.trial import Trial, trial

_NEVER = float("inf")
_ALL = 2**62  # more than any card has
_MOST_NODES = 16  # that are tried pod by pod, the most promising first
# When a pod is expected to end, never before now, if it is one of so many that must have ended: the
# last of many ends later than each of them usually does.
Ends = Callable[[Held, int], float]


_Promising = list[tuple[float, NodeState]]


class Seat(NamedTuple):
    """What one pod will have."""

    pod: PodRequest
    placement: Placement
    leaving: frozenset[str]  # uids of pods that must have ended before
    free_s: float


class Place(NamedTuple):
    """Where a pod will be."""

    pod: PodRequest
    node: str
    cards: frozenset[int]  # their indexes


@dataclass(frozen=True, slots=True)
class FutureRoom:
    seats: tuple[Seat, ...]

    @property
    def expected_s(self) -> float:
        return max(seat.free_s for seat in self.seats)


@dataclass(frozen=True, slots=True)
class Search:
    """`spoken_for`: uids of pods whose room is kept for somebody else already."""

    cluster: ClusterModel
    policy: Policy
    ends: Ends
    now_s: float
    spoken_for: Collection[str] = ()


def future_room(search: Search, pods: Sequence[PodRequest]) -> FutureRoom | None:
    """All of the pods, or None."""
    seats: list[Seat] = []
    taken = set(search.spoken_for)
    # By likeness, with one of these pods: members of a gang are mostly alike.
    nodes: dict[Hashable, tuple[PodRequest, _Promising]] = {}
    with trial(search.cluster) as trying:
        for pod in sorted(pods, key=size_of, reverse=True):
            alike = likeness(search.cluster, pod)
            if alike not in nodes:
                nodes[alike] = (pod, _promising(search, pod, taken))
            seat = _seat(search, pod, taken, nodes[alike][1])
            if seat is None:
                return None
            for uid in seat.leaving:
                trying.release(uid)
            trying.hold(pod, *seat.placement)
            # A member is no pod that ends soon: another member must not count on its room.
            taken.add(pod.uid)
            seats.append(seat)
            for like, promising in nodes.values():
                _look_again(search, like, taken, promising, seat.placement.node)
    return FutureRoom(tuple(seats))


def depends_on_others(pod: PodRequest) -> bool:
    """Where it may be depends on where other pods are."""
    return bool(pod.affinity or pod.spreads or pod.same_card or pod.different_card)


def seats_on(search: Search, places: Iterable[Place]) -> list[Seat]:
    """Room that was chosen before: where it is is known, and who has to leave is found again.

    Without those that will not fit there.
    """
    seats: list[Seat] = []
    seated = set(search.spoken_for)  # they are no pods that end
    with trial(search.cluster) as trying:
        for place in places:
            seat = _seat_on(search, place, seated)
            if seat is None:
                continue
            seated.add(place.pod.uid)
            # As in `future_room`: members of a gang may wait for one and the same pod.
            for uid in seat.leaving:
                trying.release(uid)
            trying.hold(place.pod, *seat.placement)
            seats.append(seat)
    return seats


def _seat_on(search: Search, place: Place, taken: Collection[str]) -> Seat | None:
    state = search.cluster.state(place.node)
    if state is None:
        return None
    pod = place.pod
    uuids = tuple(each.card.uuid for each in state.cards if each.card.index in place.cards)
    there = replace(pod, card_choice=replace(pod.card_choice or CardChoice(), uuids=uuids))
    found = _on_node(search, there, state, search.now_s, taken) if uuids else None
    return found[1]._replace(pod=pod) if found is not None else None


def _look_again(
    search: Search, pod: PodRequest, taken: Collection[str], nodes: _Promising, changed: str
) -> None:
    state = search.cluster.state(changed)
    nodes[:] = [each for each in nodes if each[1] is not state]
    earliest_s = _earliest_s(search, pod, state, taken) if state is not None else None
    if state is not None and earliest_s is not None:
        insort(nodes, (earliest_s, state), key=_soonest)


def _seat(
    search: Search, pod: PodRequest, taken: Collection[str], nodes: _Promising
) -> Seat | None:
    now = decide(search.cluster, pod, search.policy)
    if isinstance(now, Placement):
        return Seat(pod, now, frozenset(), search.now_s)
    best: tuple[float, Seat] | None = None
    wanted = _cards_of(pod) or 1
    for earliest_s, state in nodes[:_MOST_NODES]:
        if best is not None and wanted * (earliest_s - search.now_s) >= best[0]:
            break  # no later node can be better
        found = _on_node(search, pod, state, earliest_s, taken)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return best[1] if best is not None else None


def _promising(search: Search, pod: PodRequest, taken: Collection[str]) -> _Promising:
    """Nodes that may take the pod when pods have left, with the earliest time, soonest first."""
    incurable: set[int] = set()
    for refused in refusals(search.cluster, pod):
        if not refused.curable:
            incurable.update(refused.nodes.tolist())
    found = []
    for index in search.cluster.all_nodes().tolist():
        if index in incurable:
            continue
        state = search.cluster.at(index)
        earliest_s = _earliest_s(search, pod, state, taken)
        if earliest_s is not None:
            found.append((earliest_s, state))
    found.sort(key=_soonest)
    return found


def _soonest(each: tuple[float, NodeState]) -> tuple[float, int]:
    return (each[0], each[1].index)


def _earliest_s(
    search: Search, pod: PodRequest, state: NodeState, taken: Collection[str]
) -> float | None:
    """Not before this time enough is free of so many cards; None: never.

    A bound, so that few nodes are tried pod by pod. Of CPU it looks for pods without GPUs only.
    """
    leaves = [
        (_NEVER if held.reserved or held.pod.uid in taken else search.ends(held, 1), held)
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
            units = _ALL if hold.whole or hold.possible else hold.units
            by_card.setdefault(hold.uuid, []).append((end_s, units))
    times = [
        _card_s(pod, card, by_card.get(card.card.uuid, []), search.now_s)
        for card in state.cards
        if card.usable
    ]
    wanted = _cards_of(pod)
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


def _on_node(
    search: Search, pod: PodRequest, state: NodeState, earliest_s: float, taken: Collection[str]
) -> tuple[float, Seat] | None:
    """The seat, and what it costs."""
    cluster, name = search.cluster, state.node.name
    ends = {
        held.pod.uid: (search.ends(held, 1), held)
        for held in state.pods.values()
        if not held.reserved and held.pod.uid not in taken
    }
    idle_of = list(_cards_and_ends(state, ends, search.now_s))
    with trial(cluster) as trying:
        gone = _released(search, pod, name, sorted(ends.values(), key=_by_end), earliest_s, trying)
        if gone is None:
            return None
        leaving = _needed(search, pod, name, [held for _, held in gone], trying)
        placement = decide_on(cluster, pod, search.policy, (name,))
    assert isinstance(placement, Placement)
    free_s = max((search.ends(ends[uid][1], len(leaving)) for uid in leaving), default=search.now_s)
    used = {share.uuid for gpus in placement.allocation.containers for share in gpus.shares}
    kept_s = sum(free_s - min(end_s, free_s) for card, end_s in idle_of if card.card.uuid in used)
    cost = (_cards_of(pod) or 1) * (free_s - search.now_s) + kept_s
    return cost, Seat(pod, placement, frozenset(leaving), free_s)


def _by_end(each: tuple[float, Held]) -> tuple[float, str]:
    return (each[0], each[1].pod.uid)


def _cards_and_ends(
    state: NodeState, ends: dict[str, tuple[float, Held]], now_s: float
) -> Iterator[tuple[CardState, float]]:
    """Each card with the time from which on nothing is held of it."""
    for card in state.cards:
        uuid = card.card.uuid
        using = (e for e, held in ends.values() if any(h.uuid == uuid for h in held.cards))
        yield card, max(using, default=now_s)


def _released(
    search: Search,
    pod: PodRequest,
    node: str,
    in_order: Sequence[tuple[float, Held]],
    earliest_s: float,
    trying: Trial,
) -> list[tuple[float, Held]] | None:
    """Release pods until the new one fits: these have ended by then. None: it never fits."""
    gone: list[tuple[float, Held]] = []
    for end_s, held in in_order:
        if end_s > earliest_s and _fits(search, pod, node):
            return gone
        trying.release(held.pod.uid)
        gone.append((end_s, held))
    return gone if _fits(search, pod, node) else None


def _needed(
    search: Search, pod: PodRequest, node: str, gone: Sequence[Held], trying: Trial
) -> list[str]:
    """Put back those that need not leave, the last ones first."""
    needed: list[str] = []
    for held in reversed(gone):
        trying.hold(held.pod, held.node, held.allocation)
        if not _fits(search, pod, node):
            trying.release(held.pod.uid)
            needed.append(held.pod.uid)
    return needed


def _fits(search: Search, pod: PodRequest, node: str) -> bool:
    return isinstance(decide_on(search.cluster, pod, search.policy, (node,)), Placement)


def _cards_of(pod: PodRequest) -> int:
    wholes = sum(ask.whole for ask in pod.gpus if not ask.is_init)
    return wholes or max((ask.whole or ask.cards for ask in pod.gpus), default=0)
