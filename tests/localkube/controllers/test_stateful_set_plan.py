"""The plans of StatefulSets: examples, and simulations of whole rollouts."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from localkube.controllers.stateful_set_plan import Goal, Plan, Replica, plan

OLD, NEW = "web-old", "web-new"


def well(ordinal: int, revision: str = NEW) -> Replica:
    return Replica(ordinal, revision, "Running", ready=True, available=True)


def pending(ordinal: int, revision: str = NEW) -> Replica:
    return Replica(ordinal, revision, "Pending")


def look(goal: Goal, *replicas: Replica) -> Plan:
    return plan(goal, {replica.ordinal: replica for replica in replicas})


def test_an_ordered_set_makes_one_pod_at_a_time() -> None:
    goal = Goal(3, NEW)
    assert look(goal).create == [0]
    assert look(goal, pending(0)).create == []
    assert look(goal, well(0)).create == [1]


def test_a_parallel_set_makes_all_pods_at_once() -> None:
    assert look(Goal(3, NEW, parallel=True), pending(1)).create == [0, 2]


MANY = 2**31 - 1


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("max_unavailable", [None, 1, MANY])
def test_a_plan_for_all_replicas_that_the_api_accepts_is_a_short_one(
    parallel: bool, max_unavailable: int | None
) -> None:
    goal = Goal(MANY, NEW, start=1, parallel=parallel, max_unavailable=max_unavailable)
    top = MANY
    todo = look(goal, well(1), well(2, OLD), pending(top, OLD), well(top + 1), pending(0))
    assert todo.create == (list(range(3, 503)) if parallel else [3])
    assert todo.delete == ([top + 1, 0] if parallel else [])
    tells_updates = parallel and max_unavailable is not None and max_unavailable > 1
    assert todo.update == ([top] if parallel and not max_unavailable else [top, 2] * tells_updates)


def test_a_parallel_set_shrinks_in_bursts() -> None:
    todo = look(Goal(0, NEW, parallel=True), *map(well, range(1200)))
    assert todo.delete == list(range(1199, 699, -1))


def test_numbers_begin_where_the_set_says() -> None:
    assert look(Goal(2, NEW, start=5), well(5)).create == [6]


def test_a_pod_that_has_ended_is_replaced_even_in_success() -> None:
    todo = look(Goal(2, NEW), replace(well(0), phase="Succeeded"), well(1))
    assert (todo.delete, todo.create) == ([0], [])


def test_a_ready_pod_that_is_not_available_yet_holds_up_the_next() -> None:
    assert look(Goal(2, NEW), replace(well(0), available=False)).create == []


def test_a_set_shrinks_from_the_top_one_by_one() -> None:
    goal = Goal(1, NEW)
    assert look(goal, well(0), well(1), well(2)).delete == [2]
    assert look(goal, well(0), well(1), replace(well(2), terminating=True)).delete == []
    assert look(goal, well(0), well(1)).delete == [1]


def test_a_set_does_not_shrink_while_a_lower_pod_is_unavailable() -> None:
    assert look(Goal(1, NEW), well(0), pending(1), well(2)).delete == [2]
    assert look(Goal(1, NEW), well(0), pending(1), pending(2)).delete == []
    assert look(Goal(1, NEW), well(0), well(1), pending(2)).delete == [2]
    assert look(Goal(1, NEW), pending(0), well(1)).delete == []


def test_a_parallel_set_shrinks_at_once() -> None:
    goal = Goal(1, NEW, parallel=True)
    assert look(goal, well(0), pending(1), well(2)).delete == [2, 1]


def test_pods_below_a_new_start_go_too() -> None:
    assert look(Goal(2, NEW, start=1), well(0), well(1), well(2)).delete == [0]


def test_an_update_begins_at_the_top() -> None:
    assert look(Goal(3, NEW), *(well(o, OLD) for o in range(3))).update == [2]
    assert look(Goal(3, NEW), well(0, OLD), well(1, OLD), well(2)).update == [1]


def test_an_update_stops_at_the_partition() -> None:
    goal = Goal(3, NEW, partition=2)
    assert look(goal, well(0, OLD), well(1, OLD), well(2)).update == []


def test_an_update_on_delete_waits_for_somebody_to_delete() -> None:
    assert look(Goal(1, NEW, rolling=False), well(0, OLD)) == Plan()


def test_several_pods_may_be_updated_at_once() -> None:
    goal = Goal(4, NEW, max_unavailable=2)
    assert look(goal, *(well(o, OLD) for o in range(4))).update == [3, 2]
    parallel = replace(goal, parallel=True)
    assert look(parallel, *(well(o, OLD) for o in range(3)), pending(3)).update == [2]


def test_a_claim_of_an_earlier_pod_delays_the_next_pod() -> None:
    todo = look(Goal(1, NEW, is_stale=lambda ordinal: ordinal == 0))
    assert (todo.create, todo.waits_for_claims) == ([], True)


def test_a_pod_with_wrong_labels_or_claims_is_repaired_once_it_runs() -> None:
    assert look(Goal(1, NEW), replace(well(0), in_order=False)).repair == [0]
    assert look(Goal(1, NEW), replace(pending(0), in_order=False)).repair == []


def test_a_waiting_pod_is_given_its_claims() -> None:
    assert look(Goal(1, NEW), pending(0)).claim == [0]


goals = st.builds(
    Goal,
    replicas=st.integers(0, 4),
    update_revision=st.just(NEW),
    start=st.integers(0, 2),
    parallel=st.booleans(),
    partition=st.integers(0, 3),
    max_unavailable=st.none() | st.integers(1, 3),
)
# What a pod is at the beginning.
states = st.sampled_from(["well", "pending", "failed", "terminating"])


def beginning(ordinal: int, revision: str, state: str) -> Replica:
    match state:
        case "well":
            return well(ordinal, revision)
        case "pending":
            return pending(ordinal, revision)
        case "failed":
            return Replica(ordinal, revision, "Failed")
        case _:
            return replace(well(ordinal, revision), terminating=True)


class World:
    """Simulated pods; their kubelets act in random order."""

    def __init__(self, goal: Goal, replicas: dict[int, Replica]) -> None:
        self.goal = goal
        self.replicas = replicas

    def act(self) -> bool:
        todo = plan(self.goal, self.replicas)
        assert len({*todo.delete, *todo.update}) == len(todo.delete) + len(todo.update)
        for ordinal in todo.create:
            assert ordinal not in self.replicas
            if not self.goal.parallel:
                lower = range(self.goal.start, ordinal)
                assert all(not self.replicas[o].unavailable for o in lower)
            old = self.goal.rolling and ordinal < self.goal.start + self.goal.partition
            self.replicas[ordinal] = pending(ordinal, OLD if old else NEW)
        for ordinal in [*todo.delete, *todo.update]:
            self.replicas[ordinal] = replace(self.replicas[ordinal], terminating=True)
        return bool(todo.create or todo.delete or todo.update)

    def moves(self) -> list[int]:
        movable = (o for o, r in self.replicas.items() if r.terminating or r.phase == "Pending")
        return sorted(movable)

    def move(self, ordinal: int) -> None:
        replica = self.replicas[ordinal]
        if replica.terminating:
            del self.replicas[ordinal]
        elif replica.phase == "Pending":
            self.replicas[ordinal] = well(ordinal, replica.revision)

    def unavailable(self) -> int:
        return sum(
            o not in self.replicas or self.replicas[o].unavailable for o in self.goal.ordinals
        )

    def rounds(self, order: random.Random) -> Iterator[None]:
        """Yields after every action of the controller, until nothing changes any more."""
        for _ in range(100):
            acted = self.act()
            yield
            moves = self.moves()
            if moves:
                self.move(order.choice(moves))
            elif not acted:
                return
        pytest.fail("the rollout never ends")


orders = st.integers(0, 9).map(random.Random)
found_pods = st.dictionaries(
    st.integers(0, 6), st.tuples(st.sampled_from([OLD, NEW]), states), max_size=5
)


@given(goals, found_pods, orders)
def test_every_rollout_ends_with_the_right_pods(
    goal: Goal, found: dict[int, tuple[str, str]], order: random.Random
) -> None:
    # An ordered set does not delete a failed pod beyond its size: it waits until the pod is well.
    failed = [o for o, (_, state) in found.items() if state == "failed"]
    assume(goal.parallel or all(ordinal in goal.ordinals for ordinal in failed))
    world = World(goal, {o: beginning(o, *how) for o, how in found.items()})
    for _ in world.rounds(order):
        pass
    assert set(world.replicas) == set(goal.ordinals)
    for ordinal, replica in world.replicas.items():
        assert not replica.unavailable
        if ordinal >= goal.start + goal.partition:
            assert replica.revision == NEW


@given(goals, orders)
def test_an_update_never_exceeds_the_unavailable_pods_that_are_allowed(
    goal: Goal, order: random.Random
) -> None:
    world = World(goal, {o: well(o, OLD) for o in goal.ordinals})
    for _ in world.rounds(order):
        assert world.unavailable() <= (goal.max_unavailable or 1)
    assert all(world.replicas[o].revision == NEW for o in goal.ordinals[goal.partition :])
