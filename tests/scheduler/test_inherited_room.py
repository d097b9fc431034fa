"""A new leader keeps the room that the last one kept, by the words in the conditions of pods."""

import pytest

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from tests.scheduler.model_api import UNITS
from tests.scheduler.stepped import Stepped
from tests.scheduler.test_kept_room import a_world, fill, node_of, wait
from tests.scheduler.test_told_room import said_by

pytestmark = pytest.mark.usefixtures("short_patience")

GROUP = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "2"}
LONG_AGO = "2020-01-01T00:00:00Z"


async def room_is_kept(*names: str, labels: dict[str, str] | None = None) -> Stepped:
    """On three nodes, of which all are taken."""
    world = a_world(3)
    await fill(world, "a", "b", "c", units=UNITS)
    for name in names:
        world.api.add_pod(name, UNITS, creationTimestamp=LONG_AGO, labels=labels or {})
    await world.settle()
    await wait(world, 100.0)
    assert len(world.state.cluster.reserved) == len(names)
    said_by(world)
    return world


def kept(world: Stepped) -> list[tuple[str, object, frozenset[str]]]:
    return sorted(
        (seat.pod.name, seat.placement.node, seat.leaving)
        for each in world.state.kept_room._reservations.all()
        for seat in each.seats
    )


@pytest.mark.parametrize(("names", "labels"), [(("large",), {}), (("g0", "g1"), GROUP)])
async def test_a_new_leader_keeps_the_same_seats(
    names: tuple[str, ...], labels: dict[str, str]
) -> None:
    world = await room_is_kept(*names, labels=labels)
    before, words = kept(world), {name: world.said(name) for name in names}
    world.now_s += 50
    world.fail_over()
    assert kept(world) == before
    await world.settle()
    assert kept(world) == before
    assert {name: world.said(name) for name in names} == words  # since when, too


async def test_it_keeps_them_from_the_first_decision_on() -> None:
    world = a_world()
    await fill(world, "x", "y")
    world.api.add_pod("large", UNITS, creationTimestamp=LONG_AGO)
    await world.settle()
    await wait(world, 100.0)
    said_by(world)
    world.api.delete_pod("x")
    world.api.add_pod("small", 1, creationTimestamp="2019-01-01T00:00:00Z")  # is tried first
    world.fail_over()
    await world.settle()
    assert node_of(world, "small") == ""


async def test_a_seat_on_a_node_that_is_gone_is_chosen_anew() -> None:
    world = await room_is_kept("large")
    [(_, node, _)] = kept(world)
    world.api.remove_node(str(node))
    world.fail_over()
    assert kept(world) == []
    await world.settle()
    await wait(world, 100.0)
    assert kept(world)[0][1] != node


async def test_a_group_keeps_all_seats_or_none() -> None:
    world = await room_is_kept("g0", "g1", labels=GROUP)
    world.api.remove_node(str(kept(world)[0][1]))
    world.fail_over()
    assert kept(world) == []


async def test_a_leader_that_keeps_no_room_restores_none() -> None:
    world = await room_is_kept("large")
    world.keeps_room = False
    world.fail_over()
    assert kept(world) == []


async def test_room_is_kept_for_no_more_pods_than_the_cluster_allows() -> None:
    world = await room_is_kept("large")
    said = world.api.pods["large"]["status"]
    world.api.add_pod("liar", UNITS, creationTimestamp=LONG_AGO)
    world.api.set_status("liar", **said)
    world.fail_over()
    assert len(kept(world)) == 1
