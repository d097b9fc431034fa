"""Small pods leave the last places to larger ones, and get one when they have waited for long."""

import pytest

from gpupool.contract.names import LABEL_KEEP_ROOM
from gpupool.engine.reservations import Reservations
from gpupool.scheduler import kept_room
from gpupool.scheduler.kept_words import LEFT
from tests.scheduler.stepped import Stepped
from tests.scheduler.test_kept_room import HALF, LONG_S, a_world, node_of, wait


@pytest.fixture
def all_places_are_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes a place one of the last is tested in `tests/engine/test_last_places.py`."""
    monkeypatch.setattr(kept_room, "is_last_place", lambda *_: True)


@pytest.mark.usefixtures("all_places_are_last")
async def test_a_small_pod_leaves_the_last_place_until_it_has_waited_for_long() -> None:
    world = a_world()
    world.api.add_pod("small", HALF)
    await world.settle()
    assert not node_of(world, "small")
    assert world.said("small") == LEFT
    assert not world.state.cluster.reserved
    await wait(world)
    assert node_of(world, "small")
    assert not world.state.cluster.reserved


@pytest.mark.usefixtures("all_places_are_last")
async def test_a_pod_that_may_evict_others_leaves_nothing_to_them() -> None:
    world = a_world()
    world.api.add_pod("low", HALF, priority=-5)
    await wait(world, 0, LONG_S)
    assert node_of(world, "low")
    world.api.add_pod("small", HALF)
    await world.settle()
    assert node_of(world, "small")


@pytest.mark.usefixtures("all_places_are_last")
async def test_a_pod_for_which_no_room_may_be_kept_leaves_nothing_to_others() -> None:
    """It would wait for ever."""
    world = a_world()
    world.api.add_pod("small", HALF, labels={LABEL_KEEP_ROOM: "false"})
    await world.settle()
    assert node_of(world, "small")


@pytest.mark.usefixtures("all_places_are_last")
async def test_where_no_room_is_kept_nobody_leaves_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stepped, "keeps_room", False)
    world = a_world()
    world.api.add_pod("small", HALF)
    await world.settle()
    assert node_of(world, "small")


@pytest.mark.usefixtures("all_places_are_last")
async def test_an_error_in_keeping_room_ends_the_leaving_of_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    world.api.add_pod("small", HALF)
    await world.settle()
    assert world.said("small") == LEFT
    monkeypatch.setattr(Reservations, "consider", lambda *_, **__: 1 / 0)
    await wait(world)
    assert node_of(world, "small")
