"""Room that is looked for a few nodes at a time."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.engine import reservations
from gpupool.engine.future_room import future_room
from gpupool.engine.node_state import Held
from gpupool.engine.reservations import Reservations
from gpupool.engine.room_scan import RoomScan, Search
from tests.engine.building import POLICY, gpu_node, whole
from tests.engine.reserving import full_cluster, soon, waiting


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    times=st.lists(st.integers(0, 5), min_size=24, max_size=24),
    cards=st.integers(1, 4),
    members=st.integers(1, 3),
    most=st.integers(1, 9),
)
@settings(deadline=None, max_examples=60)
def test_in_steps_the_same_room_is_found_as_at_once(
    sizes: list[int], times: list[int], cards: int, members: int, most: int
) -> None:
    def ends(held: Held, _of: int) -> float:
        return float(times[int(held.pod.uid.split("-")[1])])

    search = Search(full_cluster(*sizes), POLICY, ends, 0.0)
    pods = waiting("u", cards, members=members).pods
    scan, steps = RoomScan(search.cluster, pods), 1
    while not scan.step(search, most):
        steps += 1
    assert steps <= sum(sizes) + len(sizes)
    assert future_room(search, pods, scan) == future_room(search, pods)


def test_a_node_that_goes_between_two_steps_is_not_chosen() -> None:
    cluster = full_cluster(2, 2)
    search = Search(cluster, POLICY, soon, 0.0)
    pods = (whole("u", 2),)
    scan = RoomScan(cluster, pods)
    assert not scan.step(search, 1)
    cluster.remove_node("n0")
    assert scan.step(search)
    room = future_room(search, pods, scan)
    assert room is not None
    assert room.seats[0].placement.node == "n1"


def test_a_node_that_is_new_under_an_old_name_is_not_taken_for_the_old_one() -> None:
    cluster = full_cluster(2)
    search = Search(cluster, POLICY, soon, 0.0)
    pods = (whole("u", 2),)
    scan = RoomScan(cluster, pods)
    assert scan.step(search)
    cluster.remove_node("n0")
    cluster.set_node(gpu_node("n0", 1))
    assert future_room(search, pods, scan) is None


def test_a_reservation_is_made_when_all_nodes_were_looked_at() -> None:
    kept = Reservations(full_cluster(2, 2))
    due = [waiting("u", 2)]
    assert not kept.consider(due, POLICY, soon, 0.0, most=1)
    assert kept.is_looking
    assert not kept.consider(due, POLICY, soon, 1.0, most=100)
    assert kept.consider(due, POLICY, soon, 2.0, most=100)
    assert not kept.is_looking


def test_who_goes_while_room_is_looked_for_leaves_nothing_behind() -> None:
    kept = Reservations(full_cluster(2, 2))
    kept.consider([waiting("u", 2)], POLICY, soon, 0.0, most=1)
    assert not kept.consider([], POLICY, soon, 1.0, most=1)
    assert not kept.is_looking


def test_one_that_room_of_others_keeps_from_a_seat_stops_those_behind_it_in_steps_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reservations, "_NODES_EACH", 1)
    kept = Reservations(full_cluster(2, 2))
    kept.consider([waiting("first", 2)], POLICY, soon, 0.0)
    due = [waiting("pair", 2, members=2), waiting("small", 1, since_s=1)]
    monkeypatch.setattr(Reservations, "most", lambda _: 9)
    steps = 0
    while not steps or kept.is_looking:
        assert not kept.consider(due, POLICY, soon, 1.0, most=1)
        steps += 1
    assert steps == 2 * (2 + 1)  # with the room of others and without
    assert not kept.may_consider(2.0)
    assert "small" not in kept


def ends_on_n0(held: Held, _of: int) -> float:
    return 10.0 if held.node == "n0" else float("inf")


def test_a_node_that_opens_while_room_is_looked_for_is_looked_at() -> None:
    cluster = full_cluster(2, 2, 2)
    cluster.set_node(replace(gpu_node("n0", 2), unschedulable=True))
    kept, due = Reservations(cluster), [waiting("u", 2)]
    assert not kept.consider(due, POLICY, ends_on_n0, 0.0, most=1)
    cluster.set_node(gpu_node("n0", 2))
    made = [kept.consider(due, POLICY, ends_on_n0, 1.0, most=1) for _ in range(9)]
    assert [each.nodes() for found in made for each in found] == [{"n0"}]


def test_nobody_is_given_up_because_of_a_node_that_opens_at_the_end_of_the_search() -> None:
    cluster = full_cluster(2, 2, 2)
    cluster.set_node(replace(gpu_node("n0", 2), unschedulable=True))
    kept, due = Reservations(cluster), [waiting("u", 2)]
    assert not kept.consider(due, POLICY, ends_on_n0, 0.0, most=1)
    assert not kept.consider(due, POLICY, ends_on_n0, 0.0, most=100)  # all were looked at
    cluster.set_node(gpu_node("n0", 2))
    assert not kept.consider(due, POLICY, ends_on_n0, 1.0, most=100)
    assert not kept.is_looking
    assert kept.consider(due, POLICY, ends_on_n0, 2.0, most=100)


def test_one_that_fits_nowhere_does_not_keep_others_waiting_while_nodes_change() -> None:
    cluster = full_cluster(2, 2)
    kept, due = Reservations(cluster), [waiting("never", 64), waiting("u", 2, since_s=1)]
    made = []
    for number in range(30):
        cluster.set_node(gpu_node("n1", 2, labels={"seen": str(number)}))
        made += kept.consider(due, POLICY, soon, float(number), most=1)
    assert [each.waiting.key for each in made] == ["u"]


def test_one_that_was_given_up_gets_room_when_a_node_comes_and_others_keep_coming() -> None:
    cluster = full_cluster(2, 2)
    kept = Reservations(cluster)
    kept.consider([waiting("large", 4)], POLICY, soon, 0.0)
    cluster.set_node(gpu_node("n2", 4))
    for number in range(30):
        due = [waiting("large", 4), *(waiting(f"never-{number}-{at}", 64) for at in range(3))]
        if kept.consider(due, POLICY, soon, float(number), most=100):
            break
    assert "large" in kept
