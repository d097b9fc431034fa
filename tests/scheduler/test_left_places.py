"""Small pods leave the last places to larger ones: for half an hour, or until they have waited for
long.
"""

import pytest

from gpupool.contract.names import LABEL_KEEP_ROOM
from gpupool.engine.last_places import LEFT_S
from gpupool.engine.reservations import Reservations
from gpupool.scheduler import kept_room
from gpupool.scheduler.kept_words import LEFT
from tests.scheduler.model_api import UNITS
from tests.scheduler.stepped import Stepped
from tests.scheduler.test_kept_room import HALF, LONG_S, a_world, fill, node_of, wait
from tests.scheduler.test_planned_moves import entry, owned, plan

NO_ROOM = {LABEL_KEEP_ROOM: "false"}


@pytest.fixture(autouse=True)
def empty_nodes_are_last_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes a place one of the last is tested in `tests/engine/test_last_places.py`."""
    monkeypatch.setattr(
        kept_room,
        "is_last_place",
        lambda cluster, pod, policy, found: not cluster.state(found.node).pods,
    )


async def a_place(nodes: int = 1) -> Stepped:
    """A pod has ended on the first node."""
    world = a_world(nodes)
    await fill(world, "before", units=UNITS)
    assert node_of(world, "before") == "n0"
    await world.end("before")
    return world


async def add(world: Stepped, name: str, **given: object) -> str:
    """Where the pod is then."""
    world.api.add_pod(name, HALF, **given)  # type: ignore[arg-type]
    await world.settle()
    return node_of(world, name)


async def test_a_small_pod_leaves_the_place_until_it_has_waited_for_long() -> None:
    world = await a_place()
    assert not await add(world, "small")
    assert world.said("small") == LEFT
    assert not world.state.cluster.reserved
    await wait(world)
    assert node_of(world, "small")
    assert not world.state.cluster.reserved


async def test_a_place_is_for_all_after_half_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if all reservations are taken, so that none is free for the pod."""
    monkeypatch.setattr(Reservations, "is_full", lambda _: True)
    world = await a_place()
    assert not await add(world, "small")
    await wait(world, LEFT_S - LONG_S)
    assert not node_of(world, "small")
    await wait(world, LONG_S)
    assert node_of(world, "small")


async def test_pods_that_end_there_just_then_do_not_keep_it_for_another_half_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where pods come and go all the time, one always ends before anybody looks."""
    monkeypatch.setattr(Reservations, "is_full", lambda _: True)
    world = await a_place()
    assert not await add(world, "small")
    world.now_s += LEFT_S + 1
    world.state.kept_room.freed("n0", world.state.policy)
    await wait(world, LONG_S)
    assert node_of(world, "small")


async def test_a_pod_without_gpus_leaves_places_for_half_an_hour_in_all() -> None:
    """Room is never kept for it, so it would leave one place after the other."""
    world = await a_place()
    world.api.add_pod("host", 0)
    await world.settle()
    assert not node_of(world, "host")
    world.now_s += LEFT_S - LONG_S
    world.api.add_pod("next", UNITS, labels=NO_ROOM)
    await world.settle()
    assert node_of(world, "next") == "n0"
    await world.end("next")
    assert not node_of(world, "host")
    await wait(world, 2 * LONG_S)
    assert node_of(world, "host")


async def test_a_large_pod_takes_it_meanwhile() -> None:
    world = await a_place()
    assert not await add(world, "small")
    world.api.add_pod("large", UNITS, labels=NO_ROOM)  # so that it does not leave it either
    await world.settle()
    assert node_of(world, "large")
    assert not node_of(world, "small")


async def test_a_place_where_nobody_has_ended_lately_is_for_all() -> None:
    assert await add(a_world(), "small")


async def test_an_important_pod_leaves_nothing_to_others() -> None:
    assert await add(await a_place(), "small", priority=1)


async def test_a_pod_for_which_no_room_may_be_kept_leaves_nothing_to_others() -> None:
    """Nor does it wait behind a pod like it that does."""
    world = a_world()
    await fill(world, "before", units=UNITS)
    world.api.add_pod("small", HALF)
    assert not await add(world, "free", labels=NO_ROOM)
    await world.end("before")
    assert node_of(world, "free")


async def test_where_no_room_is_kept_nobody_leaves_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stepped, "keeps_room", False)
    assert await add(await a_place(), "small")


async def test_an_error_in_keeping_room_ends_the_leaving_of_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await a_place()
    assert not await add(world, "small")
    monkeypatch.setattr(Reservations, "consider", lambda *_, **__: 1 / 0)
    await wait(world)
    assert node_of(world, "small")


async def test_what_is_said_is_written_once() -> None:
    world = await a_place()
    await add(world, "small")
    version = world.api.pods["small"]["metadata"]["resourceVersion"]
    for _ in range(3):
        world.state.wake()
        await wait(world, 10)
    assert world.said("small") == LEFT
    assert world.api.pods["small"]["metadata"]["resourceVersion"] == version


async def test_a_pod_that_moves_by_a_plan_takes_the_place_of_the_plan() -> None:
    """Its predecessor was evicted for it, and `gpupool defrag` waits."""
    world = await a_place()
    plan(world, "n0", entry("n0-0", "n0-1"))
    assert not await add(world, "small")
    owned(world, "successor", HALF)
    await world.settle()
    assert node_of(world, "successor") == "n0"


async def test_a_place_is_not_left_to_pods_that_would_be_evicted_for_it() -> None:
    world = a_world()
    await fill(world, "before", units=UNITS)
    world.api.add_pod("lower", UNITS, priority=-5)
    world.api.add_pod("small", HALF)
    await world.settle()
    await world.end("before")
    assert node_of(world, "small")
    assert not node_of(world, "lower")
