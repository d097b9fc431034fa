"""Reservations: what must hold whatever arrives, however wrong the expected ends are."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.pods import PodRequest
from gpupool.engine import reservations
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.gang import Placements, decide_gang
from gpupool.engine.node_state import Held
from gpupool.engine.patience import Patience
from gpupool.engine.reservation import Reservation, Waiting
from gpupool.engine.reservations import Reservations
from tests.engine.building import POLICY, cluster_of, gpu_node, shared, whole
from tests.engine.reserving import full_cluster, soon, waiting

PATIENCE = 3
LONGEST = 6  # steps that a pod runs
HORIZON = 300


@dataclass
class World:
    """Jobs wait in the order of arrival, and small pods come in every step, for ever."""

    cluster: ClusterModel
    guesses: list[int]  # what is expected of each pod, in turn, and how long it really runs
    runs: list[int]
    small_units: list[int]
    now: int = 0
    count: int = 0
    queue: dict[str, tuple[tuple[PodRequest, ...], int]] = field(default_factory=dict)
    ending: dict[str, int] = field(default_factory=dict)
    guessed: dict[str, int] = field(default_factory=dict)
    placed_at: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kept = Reservations(self.cluster)

    def add(self, name: str, *pods: PodRequest) -> None:
        self.queue[name] = (pods, self.now)

    def step(self) -> None:
        self.now += 1
        for uid in [uid for uid, end in self.ending.items() if end <= self.now]:
            del self.ending[uid]
            held = self.cluster.held(uid)
            assert held is not None
            self.cluster.release(uid)
            self.kept.gone(uid)
            self.kept.settle(held.node, POLICY)
            self.check()
        # Small pods that found no room have gone elsewhere: only the stream matters, not a backlog.
        for name in [name for name in self.queue if name.startswith("s")]:
            del self.queue[name]
        for _ in range(3):
            self.count += 1
            units = self.small_units[self.count % len(self.small_units)]
            self.add(f"s{self.count}", shared(f"s{self.count}", units))
        # The worst order for old jobs: those that came last go first.
        for name in [*reversed(list(self.queue))]:
            self._try(name)
        due = [
            Waiting(name, pods, since)
            for name, (pods, since) in self.queue.items()
            if since <= self.now - PATIENCE
        ]
        for over in self.kept.lapsed(self.now):
            self.kept.drop(over.waiting.key)
        self.kept.consider(due, POLICY, self._ends, self.now)
        self.kept.move_late(POLICY, self._ends, self.now)

    def _ends(self, held: Held, of: int) -> float:
        return max(self.now, self.guessed[held.pod.uid])

    def _try(self, name: str) -> None:
        pods, _ = self.queue[name]
        with self.kept.own_room(name):
            found = self._decide(pods)
        if found is None:
            usable = self.kept.open_until(self.now + self._guess(), pods[0].priority)
            with self.kept.ignored(lambda each: each in usable):
                found = self._decide(pods)
        if found is None:
            return
        del self.queue[name]
        self.kept.drop(name)
        self.placed_at[name] = self.now
        for pod in pods:
            self.count += 1
            self.cluster.hold(pod, *found[pod.uid])
            self.kept.backfilled(pod.uid, POLICY)
            self.guessed[pod.uid] = self.now + self._guess()
            self.ending[pod.uid] = self.now + self.runs[self.count % len(self.runs)]

    def _guess(self) -> int:
        return self.guesses[self.count % len(self.guesses)]

    def _decide(self, pods: tuple[PodRequest, ...]) -> Placements | None:
        if len(pods) > 1:
            gang = decide_gang(self.cluster, pods, POLICY, len(pods))
            return gang if isinstance(gang, dict) else None
        found = decide(self.cluster, pods[0], POLICY)
        return {pods[0].uid: found} if isinstance(found, Placement) else None

    # -- what must hold ----------------------------------------------------------------------

    def check(self) -> None:
        for held in self._cards():
            assert held <= 1
        kept = self.kept.all()
        seats = [seat for each in kept for seat in each.seats]
        assert len(seats) <= self.kept.most() or len(kept) == 1
        cards = Counter(
            share.uuid
            for seat in seats
            if seat.pod.gpus[0].whole
            for gpus in seat.placement.allocation.containers
            for share in gpus.shares
        )
        assert all(count == 1 for count in cards.values())
        for each in kept:  # never a part of a gang
            assert {seat.pod.uid for seat in each.seats} == {pod.uid for pod in each.waiting.pods}
            assert each.waiting.key in self.queue
        assert len(self.cluster.reserved) == len(seats)

    def _cards(self) -> Iterator[float]:
        used: Counter[str] = Counter()
        for held in self.cluster.holds():
            for hold in () if held.reserved else held.cards:
                used[hold.uuid] += 15 if hold.whole else hold.units
        yield from (units / 15 for units in used.values())


jobs = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(0, 20)), min_size=1, max_size=6
)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    jobs,
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.lists(st.integers(1, LONGEST), min_size=1, max_size=5),
    st.lists(st.integers(1, 15), min_size=1, max_size=4),
)
def test_every_job_that_fits_on_an_empty_cluster_starts_under_any_stream_of_small_pods(
    sizes: list[int],
    jobs: list[tuple[int, int, int]],
    guesses: list[int],
    runs: list[int],
    small: list[int],
) -> None:
    nodes = [gpu_node(f"n{at}", size) for at, size in enumerate(sizes)]
    world = World(cluster_of(*nodes), guesses, runs, small)
    wanted = {}
    for at, (members, cards, when) in enumerate(jobs):
        pods = tuple(whole(f"j{at}-{each}", cards) for each in range(members))
        if isinstance(decide_gang(cluster_of(*nodes), pods, POLICY, members), dict):
            wanted[f"j{at}"] = (pods, when)
    for now in range(HORIZON):
        for name, (pods, when) in wanted.items():
            if when == now:
                world.add(name, *pods)
        world.step()
        world.check()
        if now > 20 and not wanted.keys() - world.placed_at.keys():
            return
    raise AssertionError(f"not placed: {wanted.keys() - world.placed_at.keys()}")


def busy_world(nodes: int = 2) -> World:
    cluster = cluster_of(*(gpu_node(f"n{at}") for at in range(nodes)))
    return World(cluster, guesses=[3], runs=[2, 3], small_units=[15])


def test_without_a_reservation_a_large_pod_starves_in_the_same_world(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Reservations, "consider", lambda *_: [])
    world = busy_world(1)
    world.step()
    world.add("large", whole("large", 2))
    for _ in range(200):
        world.step()
    assert "large" not in world.placed_at


def test_room_that_is_freed_is_kept() -> None:
    cluster = cluster_of(gpu_node())
    kept = Reservations(cluster)
    for uid in ("x", "y"):
        found = decide(cluster, whole(uid), POLICY)
        assert isinstance(found, Placement)
        cluster.hold(whole(uid), *found)
    (made,) = kept.consider(
        [Waiting("big", (whole("big", 2),), 0)], POLICY, lambda *_: 10.0, now_s=5
    )
    assert (made.made_s, made.expected_s) == (5, 10)
    cluster.release("x")
    kept.gone("x")
    assert not isinstance(decide(cluster, whole("small"), POLICY), Placement)
    cluster.release("y")
    kept.gone("y")
    with kept.own_room("big"):
        assert isinstance(decide(cluster, whole("big", 2), POLICY), Placement)


def test_a_pod_that_ends_in_time_uses_the_room_and_is_waited_for() -> None:
    cluster = cluster_of(gpu_node())
    kept = Reservations(cluster)
    found = decide(cluster, whole("x"), POLICY)
    assert isinstance(found, Placement)
    cluster.hold(whole("x"), *found)
    kept.consider([Waiting("big", (whole("big", 2),), 0)], POLICY, lambda *_: 10.0, now_s=0)
    assert kept.open_until(11, 0) == []
    usable = kept.open_until(9, 0)
    with kept.ignored(lambda each: each in usable):
        small = decide(cluster, whole("small"), POLICY)
    assert isinstance(small, Placement)
    cluster.hold(whole("small"), *small)
    kept.backfilled("small", POLICY)
    (reservation,) = kept.all()
    assert reservation.seats[0].leaving == {"x", "small"}
    assert kept.still_holds("big", POLICY)


def test_a_pod_beside_the_room_is_not_waited_for() -> None:
    cluster = cluster_of(gpu_node(count=3))
    kept = Reservations(cluster)
    found = decide(cluster, whole("x"), POLICY)
    assert isinstance(found, Placement)
    cluster.hold(whole("x"), *found)
    kept.consider([Waiting("big", (whole("big", 2),), 0)], POLICY, lambda *_: 10.0, now_s=0)
    assert kept.all()[0].seats[0].leaving == frozenset()
    cluster.release("x")
    kept.gone("x")
    beside = decide(cluster, whole("beside"), POLICY)
    assert isinstance(beside, Placement)
    cluster.hold(whole("beside"), *beside)
    kept.backfilled("beside", POLICY)
    assert kept.all()[0].seats[0].leaving == frozenset()


def test_more_important_pods_use_the_room_at_any_time() -> None:
    cluster = cluster_of(gpu_node())
    kept = Reservations(cluster)
    kept.consider([Waiting("big", (whole("big", 2),), 0)], POLICY, lambda *_: 10.0, now_s=0)
    assert kept.open_until(99, 0) == []
    assert len(kept.open_until(99, 1)) == 1


def test_a_reservation_on_a_node_that_is_gone_does_not_hold() -> None:
    cluster = cluster_of(gpu_node())
    kept = Reservations(cluster)
    kept.consider([Waiting("big", (whole("big", 2),), 0)], POLICY, lambda *_: 10.0, now_s=0)
    assert kept.still_holds("big", POLICY)
    cluster.remove_node("n")
    assert not kept.still_holds("big", POLICY)
    assert kept.drop("big")
    assert not cluster.reserved


def test_a_pod_that_fits_on_no_node_keeps_nobody_from_a_reservation() -> None:
    cluster = cluster_of(gpu_node("a"), gpu_node("b"))
    kept = Reservations(cluster)
    due = [Waiting("never", (whole("never", 9),), 0), Waiting("big", (whole("big", 2),), 1)]
    made = kept.consider(due, POLICY, lambda *_: 10.0, now_s=100)
    assert [each.waiting.key for each in made] == ["big"]


def test_patience_follows_what_pods_of_the_same_priority_and_size_wait() -> None:
    patience, small, large = Patience(), [whole("small")], [whole("large", 8)]
    assert patience.of(small) == patience.of(large) == 900
    for waited_s in range(1000, 2000):
        patience.placed(large, waited_s)
        patience.placed(small, 0)
    assert 1900 < patience.of(large) < 2000
    assert patience.of([*small, *large]) == patience.of(large)  # they start together
    assert patience.of(small) == 900
    assert patience.of([replace(large[0], priority=5)]) == 900
    patience.placed([replace(large[0], priority=7)], 1e9)
    assert patience.of([replace(large[0], priority=7)]) == 86_400


# -- one rule each -----------------------------------------------------------------------------


def names(made: list[Reservation]) -> list[Hashable]:
    return [each.waiting.key for each in made]


def test_there_is_one_reservation_for_16_nodes() -> None:
    kept = Reservations(full_cluster(*[1] * 40))
    made = kept.consider([waiting(f"w{at}") for at in range(5)], POLICY, soon, now_s=0)
    assert len(made) == 2
    assert not kept.consider([waiting("w9")], POLICY, soon, now_s=100)


def test_two_reservations_never_wait_for_the_same_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservations, "_NODES_EACH", 1)
    cluster = cluster_of(gpu_node("a", 1), gpu_node("b", 1))
    ends = {"x": 10.0, "y": 20.0}
    for uid in ends:
        found = decide(cluster, shared(uid, 15), POLICY)
        assert isinstance(found, Placement)
        cluster.hold(shared(uid, 15), *found)
    kept = Reservations(cluster)
    due = [Waiting(name, (shared(name, 15),), 0) for name in ("u", "v")]
    kept.consider(due, POLICY, lambda held, _: ends[held.pod.uid], now_s=0)
    assert [seat.leaving for each in kept.all() for seat in each.seats] == [{"x"}, {"y"}]


def test_a_share_that_is_freed_is_kept() -> None:
    cluster = cluster_of(gpu_node(count=1))
    for uid, units in (("x", 8), ("y", 7)):
        found = decide(cluster, shared(uid, units), POLICY)
        assert isinstance(found, Placement)
        cluster.hold(shared(uid, units), *found)
    kept = Reservations(cluster)
    kept.consider([Waiting("large", (shared("large", 15),), 0)], POLICY, soon, now_s=0)
    cluster.release("x")
    kept.gone("x")
    assert not isinstance(decide(cluster, shared("small", 1), POLICY), Placement)


def test_the_first_goes_to_the_oldest_and_the_next_to_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reservations, "_NODES_EACH", 1)
    kept = Reservations(full_cluster(4, 4))
    due = [waiting("oldest"), waiting("old", since_s=1), waiting("largest", 4, since_s=2)]
    assert names(kept.consider(due, POLICY, soon, now_s=10)) == ["oldest", "largest"]


def test_who_is_in_the_way_of_an_older_one_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang needs three nodes, and room is kept on one of them. Nobody younger gets more room."""
    monkeypatch.setattr(reservations, "_NODES_EACH", 1)
    kept = Reservations(full_cluster(2, 2, 2, 1))
    assert names(kept.consider([waiting("first", 2)], POLICY, soon, now_s=0)) == ["first"]
    due = [waiting("gang", 2, since_s=1, members=3), waiting("young", since_s=2)]
    assert not kept.consider(due, POLICY, soon, now_s=10)
    assert not kept.consider(due[1:], POLICY, soon, now_s=20)
    kept.drop("first")
    assert names(kept.consider(due, POLICY, soon, now_s=100)) == ["gang", "young"]


def test_nobody_counts_on_pods_that_leave_for_somebody_else() -> None:
    kept = Reservations(full_cluster(1), spoken_for=lambda: {"run-0"})
    assert not kept.consider([waiting("w")], POLICY, soon, now_s=0)
