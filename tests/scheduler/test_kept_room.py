"""A large pod gets in under a stream of small ones, step by step on the API in memory."""

import pytest

from gpupool.contract.names import LABEL_KEEP_ROOM, LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from gpupool.engine.idle_room import IDLE_S
from gpupool.engine.patience import LEAST_PATIENCE_S
from tests.scheduler.model_api import UNITS, Fate
from tests.scheduler.stepped import Stepped

HALF, LONG_S = UNITS // 2, LEAST_PATIENCE_S + 100.0  # longer than pods usually wait here


def a_world(nodes: int = 1) -> Stepped:
    """Nodes with one card that is well."""
    world = Stepped()
    for at in range(nodes):
        world.api.set_node(f"n{at}", ill=True)
    return world


def node_of(world: Stepped, name: str) -> str:
    return str(world.api.pods[name]["spec"].get("nodeName", ""))


async def fill(world: Stepped, *names: str, units: int = HALF) -> None:
    for name in names:
        await world.place(name, units)


async def wait(world: Stepped, *seconds: float) -> None:
    for each in seconds or (LONG_S,):
        world.now_s += each
        await world.settle()


async def test_what_is_freed_is_kept_for_the_pod_that_has_waited() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    assert len(world.state.kept_room) == 1
    await world.end("x")
    world.api.add_pod("small", HALF)
    await world.settle()
    assert not node_of(world, "small")
    await world.end("y")
    assert node_of(world, "large")
    assert len(world.state.kept_room) == 0
    assert not world.state.cluster.reserved


async def test_room_that_is_idle_for_hours_is_free_for_all_again() -> None:
    """A notebook beside it may run for weeks."""
    world = a_world()
    await fill(world, "notebook", "x")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    await world.end("x")
    world.api.add_pod("small", HALF)
    await wait(world)  # the scheduler looks, every few seconds
    await wait(world, IDLE_S - LONG_S)
    assert not node_of(world, "small")
    await wait(world, 2 * LONG_S)
    assert node_of(world, "small")
    assert "Reserved" not in world.said("large")
    assert not world.state.cluster.reserved
    # After as long as it was idle it has its turn again.
    await wait(world, IDLE_S + 2 * LONG_S)
    assert "Reserved" in world.said("large")


async def test_a_group_that_comes_back_after_it_has_run_does_not_pause() -> None:
    world, labels = a_world(), {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "1"}
    await fill(world, "notebook", "x")
    world.api.add_pod("large", UNITS, labels=labels)
    await wait(world, 0, LONG_S)
    await world.end("x")
    await wait(world, LONG_S, IDLE_S)
    assert len(world.state.kept_room) == 0
    for name in ("notebook", "large", *(f"short-{at}" for at in range(20))):
        if name.startswith("short"):  # nearly all pods start at once here
            await fill(world, name)
        await world.end(name)
    await fill(world, "y", "z")
    world.api.add_pod("again", UNITS, labels=labels)
    await wait(world, 0, IDLE_S / 2)
    assert "Reserved" in world.said("again")


async def test_before_that_small_pods_slip_in() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await world.end("x")
    world.api.add_pod("small", HALF)
    await world.settle()
    assert node_of(world, "small")


async def test_a_label_keeps_it_off() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS, labels={LABEL_KEEP_ROOM: "false"})
    await world.settle()
    await wait(world)
    assert len(world.state.kept_room) == 0


@pytest.mark.parametrize("keeps_room", [True, False])
async def test_the_scheduler_rests_while_a_pod_waits(
    monkeypatch: pytest.MonkeyPatch, keeps_room: bool
) -> None:
    monkeypatch.setattr(Stepped, "keeps_room", keeps_room)
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    assert world.scheduler._due_s() > world.now_s


async def test_the_condition_says_since_when_and_for_how_long() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    said = world.said("large")
    assert "Reserved for it since 20" in said
    # Nothing is known of how long these pods run.
    assert "room on n0, card 1, expected in 24 h from then." in said
    world.now_s += 7
    assert world.said("large") == said
    assert "gpupool_scheduler_reservations 1.0" in world.scheduler.metrics_text()


async def test_a_new_leader_keeps_the_same_room() -> None:
    world = a_world(2)
    await fill(world, "a", "b", "c", "d")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    await world.end("a")
    world.fail_over()
    await world.settle()
    await wait(world)
    (node,) = world.state.kept_room._reservations.all()[0].nodes()
    assert node == node_of(world, "b")  # nearly free already
    await world.end("b")
    assert node_of(world, "large") == node


async def test_a_new_leader_counts_the_time_that_pods_waited_before_it() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS, creationTimestamp="2020-01-01T00:00:00Z")
    await world.settle()  # it is seen for the first time, and no time passes
    world.now_s += 6  # until somebody looks
    await world.settle()
    assert len(world.state.kept_room) == 1


async def test_an_internal_error_ends_it_and_pods_are_scheduled_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    assert world.state.cluster.reserved

    def fail(*_: object) -> None:
        raise RuntimeError("as a test")

    # After it was chosen, and before anybody has noted for whom.
    monkeypatch.setattr(world.state.kept_room, "_key_of", {})
    monkeypatch.setattr(world.state, "keep_room", fail)
    await world.end("x")
    world.api.add_pod("small", HALF)
    await world.settle()
    assert node_of(world, "small")
    assert not world.state.cluster.reserved


async def test_a_pod_that_asks_for_something_else_loses_its_room() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    world.api.set_spec("pods", "large", nodeSelector={"kubernetes.io/hostname": "elsewhere"})
    await world.settle()
    assert not world.state.cluster.reserved


async def test_off_by_setting_no_room_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stepped, "keeps_room", False)
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    assert not world.state.cluster.reserved


async def test_room_is_given_up_when_the_pod_goes() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    await world.end("x")
    world.api.add_pod("small", HALF)
    await world.settle()
    await world.end("large")
    assert node_of(world, "small")
    assert not world.state.cluster.reserved


async def test_room_is_given_up_when_other_room_turns_up() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    await world.end("x")
    world.api.add_pod("small", HALF)
    await world.settle()
    world.api.set_node("new", ill=True)
    await world.settle()
    assert node_of(world, "large") == "new"
    assert node_of(world, "small") == "n0"


async def test_a_group_gets_room_for_all_of_its_pods() -> None:
    world = a_world(2)
    await fill(world, "a", "b", "c", "d")
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "2"}
    for name in ("g0", "g1"):
        world.api.add_pod(name, UNITS, labels=labels)
    await world.settle()
    await wait(world)
    assert len(world.state.cluster.reserved) == 2
    for name in ("a", "b", "c"):
        await world.end(name)
        world.api.add_pod(f"small-{name}", HALF)
        await world.settle()
        assert not node_of(world, "g0")
    await world.end("d")
    assert {node_of(world, "g0"), node_of(world, "g1")} == {"n0", "n1"}
    assert not world.state.cluster.reserved


async def test_a_member_that_goes_gives_up_the_room_of_its_group() -> None:
    world = a_world(2)
    await fill(world, "a", "b", "c", "d")
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "2"}
    for name in ("g0", "g1"):
        world.api.add_pod(name, UNITS, labels=labels)
    await world.settle()
    await wait(world)
    await world.end("g1")
    assert not world.state.cluster.reserved


async def test_a_more_important_pod_takes_the_room() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    await world.end("x")
    world.api.add_pod("urgent", HALF, 100)
    await world.settle()
    assert node_of(world, "urgent")
    await world.end("y")
    assert not node_of(world, "large")
    await world.end("urgent")
    assert node_of(world, "large")


async def test_a_preemption_takes_the_place_of_kept_room() -> None:
    world = a_world()
    world.api.graceful = True
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS, 0)
    await world.settle()
    await wait(world)
    await world.try_in_vain("urgent", UNITS, 100)
    assert not node_of(world, "large")
    for name in ("x", "y"):
        await world.end(name)
    assert node_of(world, "urgent")
    await world.end("urgent")
    assert node_of(world, "large")
    assert not world.state.cluster.reserved


NEVER = {"preemptionPolicy": "Never"}


async def test_nobody_is_evicted_for_room_that_another_gets() -> None:
    """Room is kept for a pod that may not preempt. One that may goes first: it has evicted."""
    world = a_world()
    world.api.graceful = True
    await world.place("x", UNITS)
    world.api.add_pod("patient", UNITS, 100, NEVER)
    await world.settle()
    await wait(world)
    assert len(world.state.kept_room) == 1
    await world.try_in_vain("urgent", UNITS, 100)
    assert "deletionTimestamp" in world.api.pods["x"]["metadata"]
    await world.end("x")
    assert node_of(world, "urgent")
    await wait(world)
    await world.end("urgent")
    assert node_of(world, "patient")


async def test_room_that_is_being_cleared_for_another_is_not_kept() -> None:
    world = a_world()
    world.api.graceful = True
    await world.place("x", UNITS)
    await world.try_in_vain("urgent", UNITS, 100)
    world.api.add_pod("patient", UNITS, 100, NEVER)
    await world.settle()
    await wait(world)
    await world.end("x")
    assert node_of(world, "urgent")


async def test_a_node_that_goes_takes_the_room_with_it() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    assert world.state.cluster.reserved
    world.state.cluster.remove_node("n0")
    await wait(world)
    assert not world.state.cluster.reserved


async def test_a_refused_binding_costs_nothing() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    for name in ("x", "y"):
        world.api.delete_pod(name)
    await world.write(world.try_next(), Fate.FORBIDDEN)
    world.now_s += 20
    await world.settle()
    assert node_of(world, "large")


async def test_a_short_pod_uses_the_room_in_the_meantime() -> None:
    world = a_world()
    for at in range(8):  # a kind of work that takes ten seconds
        await world.place(f"short-{at}", 1)
        world.now_s += 10
        await world.end(f"short-{at}")
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    await world.end("x")
    world.api.add_pod("unknown", HALF)
    world.api.add_pod("short", 1)
    await world.settle()
    assert node_of(world, "short")
    assert not node_of(world, "unknown")


async def test_a_group_keeps_what_is_free_first_and_says_where() -> None:
    world = a_world(32)
    names = [f"run-{at}" for at in range(32)]
    await fill(world, *names, units=UNITS)
    labels = {LABEL_POD_GROUP: "gang", LABEL_POD_GROUP_MIN: "2"}
    for name in ("gang-0", "gang-1"):
        world.api.add_pod(name, UNITS, labels=labels)
    await world.settle()
    await wait(world)
    (gang,) = world.state.kept_room._reservations.all()
    others = [name for name in names if node_of(world, name) not in gang.nodes()]
    node = node_of(world, others[0])
    await world.end(others[0])
    world.api.add_pod("single", UNITS)
    await world.settle()
    assert not node_of(world, "single")
    assert sum(f"room on {node}," in world.said(name) for name in ("gang-0", "gang-1")) == 1
    await world.end(others[1])
    assert {node_of(world, name) for name in ("gang-0", "gang-1")} >= {node}
    assert not world.state.cluster.reserved
