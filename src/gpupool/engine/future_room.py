"""future_room: where a pod, or all pods of a gang, will fit soonest when pods end by themselves.

On each node that could help: its pods leave in the order of their expected ends until the new pod
fits; those that need not have left are put back. Among nodes the sum decides of what is lost: the
time that the new pod waits, for each of its cards, and the time that cards are kept free for it.

Nobody is evicted. Changes nothing.
"""

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gpupool.core.card_choice import CardChoice
from gpupool.core.pods import PodRequest
from gpupool.engine.decide import Placement, decide, decide_on
from gpupool.engine.gang import size_of
from gpupool.engine.likeness import likeness
from gpupool.engine.node_state import CardState, Held, NodeState
from gpupool.engine.room_scan import (
    Promising,
    RoomScan,
    Search,
    by_time,
    cards_of,
    earliest_of,
    promising,
)
from gpupool.engine.trial import Trial, trial

_MOST_NODES = 16  # that are tried pod by pod, the most promising first


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


def future_room(
    search: Search, pods: Sequence[PodRequest], scan: RoomScan | None = None
) -> FutureRoom | None:
    """All of the pods, or None. `scan`: it has looked at all nodes for these pods."""
    seats: list[Seat] = []
    taken = set(search.spoken_for)
    if scan is None:
        scan = RoomScan(search.cluster, pods)
        scan.step(search)
    # By likeness: members of a gang are mostly alike.
    nodes = {alike: _Nodes(*found) for alike, found in scan.found(search.cluster).items()}
    with trial(search.cluster) as trying:
        for pod in sorted(pods, key=size_of, reverse=True):
            alike = likeness(search.cluster, pod)
            if alike not in nodes:  # members that are held by now make others look at its labels
                now = replace(search, spoken_for=taken)
                nodes[alike] = _Nodes(pod, promising(now, pod))
            seat = _seat(search, pod, taken, nodes[alike])
            if seat is None:
                return None
            for uid in seat.leaving:
                trying.release(uid)
            trying.hold(pod, *seat.placement)
            # A member is no pod that ends soon: another member must not count on its room.
            taken.add(pod.uid)
            seats.append(seat)
            for each in nodes.values():
                _look_again(search, taken, each, seat.placement.node)
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


@dataclass(slots=True)
class _Nodes:
    """Where one of some pods that are alike may be."""

    like: PodRequest
    soonest: Promising
    # What was found on nodes that did not change since, by their index.
    tried: dict[int, tuple[float, Seat] | None] = field(default_factory=dict)


def _look_again(search: Search, taken: Collection[str], nodes: _Nodes, changed: str) -> None:
    state = search.cluster.state(changed)
    assert state is not None  # a pod has a seat on it
    nodes.soonest[:] = [each for each in nodes.soonest if each[1] is not state]
    nodes.tried.pop(state.index, None)
    if depends_on_others(nodes.like) or nodes.like.anti_affinity:
        nodes.tried.clear()
    earliest_s = earliest_of(replace(search, spoken_for=taken), nodes.like, state)
    if earliest_s is not None:
        insort(nodes.soonest, (earliest_s, state), key=by_time)


def _seat(search: Search, pod: PodRequest, taken: Collection[str], nodes: _Nodes) -> Seat | None:
    now = decide(search.cluster, pod, search.policy)
    if isinstance(now, Placement):
        return Seat(pod, now, frozenset(), search.now_s)
    best: tuple[float, Seat] | None = None
    wanted = cards_of(pod) or 1
    for earliest_s, state in nodes.soonest[:_MOST_NODES]:
        if best is not None and wanted * (earliest_s - search.now_s) >= best[0]:
            break  # no later node can be better
        if state.index not in nodes.tried:
            nodes.tried[state.index] = _on_node(search, pod, state, earliest_s, taken)
        found = nodes.tried[state.index]
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return best[1]._replace(pod=pod) if best is not None else None


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
    cost = (cards_of(pod) or 1) * (free_s - search.now_s) + kept_s
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
