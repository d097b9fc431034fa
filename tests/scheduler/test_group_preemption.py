"""Groups preempt as a whole, or not at all."""

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from gpupool.scheduler.inherited import inherit_claims
from tests.scheduler.model_api import UNITS
from tests.scheduler.stepped import Stepped


def with_nodes(*nodes: str) -> Stepped:
    stepped = Stepped()
    for node in nodes:
        stepped.api.set_node(node, ill=False)
    stepped.tell()
    return stepped


async def filled(*nodes: str, grace_s: int = 30) -> Stepped:
    """Every card is held by a pod of low priority."""
    stepped = with_nodes(*nodes)
    for number in range(2 * len(nodes)):
        await stepped.place(f"low{number}", UNITS, grace_s=grace_s)
    stepped.api.graceful = True
    return stepped


def add_group(stepped: Stepped, count: int, least: int, units: int = UNITS) -> None:
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: str(least)}
    for number in range(count):
        stepped.api.add_pod(f"m{number}", units, 5, labels=labels)


def add_member(stepped: Stepped, name: str, units: int, priority: int, least: int) -> None:
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: str(least)}
    stepped.api.add_pod(name, units, priority, labels=labels)


def terminating(stepped: Stepped) -> set[str]:
    pods = stepped.api.pods.items()
    return {name for name, pod in pods if "deletionTimestamp" in pod["metadata"]}


async def test_a_group_makes_room_for_as_many_members_as_it_needs() -> None:
    stepped = await filled("n", "o")
    add_group(stepped, 3, least=2)
    await stepped.settle()
    assert len(terminating(stepped)) == 2
    for name in terminating(stepped):
        assert not {"m0", "m1", "m2"} & await stepped.settle()
        await stepped.end(name)
    assert len({"m0", "m1", "m2"} & await stepped.settle()) == 2


async def test_nobody_is_evicted_for_a_group_that_would_not_fit_then_either() -> None:
    stepped = await filled("n")
    add_group(stepped, 3, least=3)
    await stepped.settle()
    assert not terminating(stepped)


async def test_the_room_of_a_group_is_kept_from_others_until_the_last_victim_has_gone() -> None:
    stepped = await filled("n")
    add_group(stepped, 2, least=2)
    await stepped.settle()
    first, last = sorted(terminating(stepped))
    stepped.api.add_pod("small", 1)
    await stepped.end(first)
    assert not {"small", "m0", "m1"} & await stepped.settle()
    await stepped.end(last)
    assert {"small", "m0", "m1"} & await stepped.settle() == {"m0", "m1"}


async def test_a_new_leader_goes_on_with_the_preemption_of_a_group() -> None:
    stepped = await filled("n")
    add_group(stepped, 2, least=2)
    await stepped.settle()
    first, last = sorted(terminating(stepped))
    stepped.fail_over()
    inherit_claims(stepped.scheduler._room)
    stepped.api.add_pod("small", 1)
    await stepped.end(first)
    assert not {"small", "m0", "m1"} & await stepped.settle()
    await stepped.end(last)
    assert {"small", "m0", "m1"} & await stepped.settle() == {"m0", "m1"}


async def test_a_group_of_which_an_eviction_is_refused_backs_off_and_evicts_nobody() -> None:
    stepped = await filled("n")
    stepped.api.protected.add("low1")
    add_group(stepped, 2, least=2)
    await stepped.settle()
    assert not terminating(stepped)
    assert stepped.backing_off() == 2


async def test_a_group_does_not_preempt_pods_of_its_own_priority() -> None:
    stepped = with_nodes("n")
    for number in range(2):
        await stepped.place(f"same{number}", UNITS, 5)
    add_group(stepped, 2, least=2)
    await stepped.settle()
    assert not terminating(stepped)


async def test_a_member_gets_its_own_cleared_room_when_the_group_is_incomplete_again() -> None:
    stepped = await filled("n", "o")
    add_group(stepped, 2, least=2)
    await stepped.settle()
    for name in terminating(stepped):
        await stepped.end(name)
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "2"}
    stepped.api.add_pod("third", UNITS, 5, labels=labels)  # beyond the minimum: it preempts alone
    await stepped.settle()
    (victim,) = terminating(stepped)
    stepped.api.terminate_pod("m0")  # now one is missing
    await stepped.settle()
    await stepped.end(victim)
    assert "third" in await stepped.settle()


async def test_the_member_that_may_evict_nobody_gets_the_room_that_is_free() -> None:
    stepped = with_nodes("n")
    await stepped.place("low0", UNITS)
    await stepped.place("low1", UNITS - 1)
    stepped.api.graceful = True
    add_member(stepped, "high", 1, priority=5, least=2)
    add_member(stepped, "low", 1, priority=0, least=2)
    await stepped.settle()
    (victim,) = terminating(stepped)
    await stepped.end(victim)
    assert {"high", "low"} <= await stepped.settle()


async def test_a_group_makes_room_for_the_members_that_may_evict_others() -> None:
    stepped = await filled("n")
    add_member(stepped, "small", 1, priority=0, least=1)
    add_member(stepped, "high", UNITS, priority=5, least=1)
    await stepped.settle()
    (victim,) = terminating(stepped)
    await stepped.end(victim)
    assert "high" in await stepped.settle()


async def test_a_group_evicts_a_pod_as_soon_as_that_has_the_room_that_was_kept_for_it() -> None:
    stepped = with_nodes("n")
    await stepped.place("low", UNITS)
    await stepped.place("top", UNITS - 1, priority=10)
    stepped.api.graceful = True
    stepped.api.add_pod("mid", UNITS, 5)
    await stepped.settle()
    # Its member of low priority may not take what is kept for a pod of higher priority.
    add_member(stepped, "small", 1, priority=0, least=2)
    add_member(stepped, "high", UNITS, priority=10, least=2)
    await stepped.settle()
    assert terminating(stepped) == {"low"}
    await stepped.end("low")
    assert terminating(stepped) == {"mid"}


async def test_of_equal_members_the_one_of_higher_priority_starts() -> None:
    """Or it would evict the other at once."""
    stepped = with_nodes("n")
    await stepped.place("low", UNITS)
    await stepped.place("top", UNITS, priority=10)
    stepped.api.graceful = True
    add_member(stepped, "old", UNITS, priority=0, least=1)
    add_member(stepped, "high", UNITS, priority=5, least=1)
    await stepped.settle()
    await stepped.end("low")
    assert "high" in await stepped.settle()
    assert not terminating(stepped)


async def test_a_group_that_needs_more_members_than_before_keeps_no_room_for_a_part() -> None:
    stepped = with_nodes("n")
    add_member(stepped, "first", 1, priority=5, least=1)
    await stepped.settle()
    await stepped.place("low", UNITS)
    stepped.api.graceful = True
    for name in ("second", "third"):
        add_member(stepped, name, UNITS, priority=5, least=2)
    await stepped.settle()
    assert terminating(stepped) == {"low"}
    stepped.api.terminate_pod("first")  # somebody deletes it: now both others must start at once
    await stepped.settle()
    assert not list(stepped.state.preemption_claims)
    await stepped.end("first")
    await stepped.end("low")
    assert {"second", "third"} <= await stepped.settle()
