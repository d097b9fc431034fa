"""Room that was cleared for a pod: who gets it, for how long it is kept, and what ends that."""

import pytest

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from gpupool.scheduler.queue import LONGEST_BACK_OFF_S
from tests.scheduler.model_api import UNITS, Fate, started
from tests.scheduler.stepped import Stepped

UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]


async def full(*nodes: str, grace_s: int = 30) -> Stepped:
    """Every card of these nodes is taken by a pod of priority 0."""
    stepped = Stepped()
    stepped.api.graceful = True
    for node in nodes:
        stepped.api.set_node(node, ill=False)
    for count in range(2 * len(nodes)):
        await stepped.place(f"low{count}", UNITS, grace_s=grace_s)
    return stepped


def leaving(stepped: Stepped) -> list[str]:
    return [
        name for name, pod in stepped.api.pods.items() if "deletionTimestamp" in pod["metadata"]
    ]


def node_of(stepped: Stepped, name: str) -> str:
    return str(stepped.api.pods[name]["spec"].get("nodeName", ""))


# -- refused evictions -----------------------------------------------------------------------


async def test_a_refused_eviction_is_not_tried_again_before_its_backoff_ends() -> None:
    stepped = await full("n")
    stepped.api.protected = {"low0", "low1"}
    stepped.api.add_pod("high", UNITS, priority=5)
    before = stepped.api.writes
    await stepped.settle()
    assert stepped.api.writes - before <= 3
    assert stepped.backing_off() == 1


async def test_after_a_refused_eviction_other_nodes_are_cleared() -> None:
    stepped = await full("m", "n")
    stepped.api.add_pod("high", UNITS, priority=5)
    stepped.tell()
    room = stepped.scheduler._room.search(stepped.state.pending[stepped.uid("high")])
    assert room is not None
    chosen = room.placements[0].node
    stepped.api.protected = {name for name in stepped.api.pods if node_of(stepped, name) == chosen}
    for _ in range(4):
        await stepped.settle()
        stepped.now_s += LONGEST_BACK_OFF_S
    (victim,) = leaving(stepped)
    assert node_of(stepped, victim) != chosen


async def test_no_victim_dies_if_the_eviction_of_another_is_refused() -> None:
    stepped = await two_small_ones_in_the_way()
    stepped.api.protected = {"small1"}
    stepped.api.add_pod("high", UNITS, priority=5)
    for _ in range(6):
        await stepped.settle()
        stepped.now_s += LONGEST_BACK_OFF_S
    assert leaving(stepped) == []


async def two_small_ones_in_the_way(grace_s: int = 30) -> Stepped:
    """Both must leave one card. The other card belongs to a pod of higher priority."""
    stepped = Stepped()
    stepped.api.graceful = True
    stepped.api.set_node("n", ill=False)
    await stepped.place("king", UNITS, priority=9)
    for name in ("small0", "small1"):
        await stepped.place(name, UNITS // 2, grace_s=grace_s)
    return stepped


@pytest.mark.parametrize("fate", [Fate.LOST_ANSWER, Fate.LOST_REQUEST, Fate.BUSY])
async def test_an_eviction_without_a_certain_answer_is_tried_again_on_the_same_node(
    fate: Fate,
) -> None:
    stepped = await full("m", "n")
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.write(stepped.try_next(), Fate.OK, Fate.OK, fate)
    node = stepped.api.pods["high"]["status"]["nominatedNodeName"]
    assert stepped.backing_off() == 1
    stepped.now_s += LONGEST_BACK_OFF_S
    await stepped.settle()
    (victim,) = leaving(stepped)
    assert node_of(stepped, victim) == node


# -- nodes that cannot take the pod any more --------------------------------------------------


async def test_a_pod_whose_node_died_preempts_on_another_one() -> None:
    stepped = await full("m", "n")
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    (stuck,) = leaving(stepped)
    dead = node_of(stepped, stuck)
    stepped.api.set_spec("nodes", dead, taints=UNREACHABLE)
    await stepped.settle()
    assert {node_of(stepped, name) for name in leaving(stepped)} == {"m", "n"}
    assert stepped.api.pods["high"]["status"]["nominatedNodeName"] != dead


async def test_a_pod_that_somebody_else_deleted_does_not_stop_a_preemption() -> None:
    stepped = await full("m", "n")
    stepped.api.add_pod("high", UNITS, priority=5)
    stepped.api.set_status("high", nominatedNodeName="n")
    (other, _) = [name for name in stepped.api.pods if node_of(stepped, name) == "n"]
    stepped.api.terminate_pod(other)
    stepped.api.set_spec("nodes", "n", taints=UNREACHABLE)
    await stepped.settle()
    assert "m" in {node_of(stepped, name) for name in leaving(stepped)}


# -- how long room is kept, and from whom -----------------------------------------------------


async def test_room_is_kept_as_long_as_the_victims_may_take_to_terminate() -> None:
    stepped = await two_small_ones_in_the_way(grace_s=3600)
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    stepped.now_s += 3500
    await stepped.end("small0")
    await stepped.try_in_vain("late", 1, priority=0)
    await stepped.end("small1")
    assert node_of(stepped, "high") == "n"


async def test_two_pods_that_preempt_on_one_node_do_not_wait_for_each_other() -> None:
    stepped = await full("n")
    stepped.api.add_pod("high", UNITS, priority=5)
    stepped.api.add_pod("also-high", UNITS, priority=5)
    await stepped.settle()
    assert len(leaving(stepped)) == 2
    await stepped.end("low0")
    await stepped.try_in_vain("small", 1, priority=0)
    assert [node_of(stepped, name) for name in ("high", "also-high")].count("n") == 1


async def test_a_victim_that_never_leaves_does_not_block_the_node_for_ever() -> None:
    stepped = await full("m", "n")
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    (stuck,) = leaving(stepped)
    stepped.now_s += 1000
    await stepped.settle()
    (other,) = [name for name in leaving(stepped) if name != stuck]
    await stepped.end(other)
    await stepped.settle()
    assert node_of(stepped, "high")


def nominated(stepped: Stepped, name: str) -> str:
    return str((stepped.api.pods[name].get("status") or {}).get("nominatedNodeName") or "")


async def one_victim_that_stays() -> Stepped:
    """The time of its claim is over, and it may evict nobody else."""
    stepped = Stepped()
    stepped.api.graceful = True
    stepped.api.set_node("n", ill=False)
    await stepped.place("low", UNITS)
    await stepped.place("equal", UNITS, priority=5)
    await stepped.try_in_vain("high", UNITS, priority=5)
    assert nominated(stepped, "high") == "n"
    stepped.now_s += 200
    return stepped


async def test_a_pod_that_waits_for_no_victims_any_more_is_nominated_no_more() -> None:
    """Autoscalers take a nominated pod for one that is about to run."""
    stepped = await one_victim_that_stays()
    await stepped.settle()
    assert len(stepped.state.preemption_claims) == 0
    assert nominated(stepped, "high") == ""


async def test_a_nomination_that_could_not_be_withdrawn_is_withdrawn_at_the_next_try() -> None:
    stepped = await one_victim_that_stays()
    await stepped.write(stepped.try_next(), Fate.FORBIDDEN)
    assert nominated(stepped, "high") == "n"
    stepped.state.wake()
    await stepped.settle()
    assert nominated(stepped, "high") == ""


async def test_a_pod_whose_victims_cannot_be_evicted_is_nominated_no_more() -> None:
    stepped = await full("n")
    stepped.api.protected = {"low0", "low1"}
    await stepped.try_in_vain("high", UNITS, priority=5)
    stepped.now_s += LONGEST_BACK_OFF_S  # twice: one victim after the other is tried
    await stepped.settle()
    stepped.now_s += LONGEST_BACK_OFF_S
    await stepped.settle()
    assert nominated(stepped, "high") == ""


async def test_a_scheduler_that_may_not_lead_any_more_withdraws_nothing() -> None:
    stepped = await one_victim_that_stays()
    writes = stepped.try_next()
    stepped.leads = False
    await stepped.write(writes)
    assert nominated(stepped, "high") == "n"


async def test_members_of_a_group_that_wait_for_no_victims_are_nominated_no_more() -> None:
    stepped = await full("n")
    group = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "2"}
    for name in ("one", "two"):
        stepped.api.add_pod(name, UNITS, 5, labels=group)
    await stepped.settle()
    assert [nominated(stepped, name) for name in ("one", "two")] == ["n", "n"]
    stepped.now_s += 200
    await stepped.settle()
    assert [nominated(stepped, name) for name in ("one", "two")] == ["", ""]


@pytest.mark.parametrize("other", [4, 5])
async def test_a_claim_leaves_a_card_that_falls_ill_before_others_are_tried(other: int) -> None:
    """For the other card, if that is being cleared for a lower priority; else it ends."""
    stepped = await full("n")
    stepped.api.add_pod("high", UNITS, priority=5)
    stepped.api.add_pod("other", UNITS, priority=other)
    await stepped.settle()
    assert cards_claimed(stepped) == {"high": "n-0", "other": "n-1"}
    stepped.api.set_node("n", ill=True)
    stepped.tell()
    stepped.scheduler._next(stepped.now_s)
    assert cards_claimed(stepped) == ({"high": "n-1"} if other < 5 else {"other": "n-1"})


def cards_claimed(stepped: Stepped) -> dict[str, str]:
    found = {}
    for _, claim in stepped.state.preemption_claims.items():
        ((share,),) = (each.shares for each in claim.placement.allocation.containers)
        found[claim.request.name] = share.uuid
    return found


async def test_an_older_pod_of_equal_priority_does_not_get_the_room_of_another() -> None:
    stepped = await full("n")
    stepped.api.add_pod("older", UNITS, priority=5)
    stepped.api.set_spec("pods", "older", schedulingGates=[{"name": "g"}])
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    (victim,) = leaving(stepped)
    stepped.api.protected = {"low0", "low1"}
    stepped.api.set_spec("pods", "older", schedulingGates=[])
    await stepped.settle()
    await stepped.end(victim)
    await stepped.settle()
    assert node_of(stepped, "high") == "n"
    assert node_of(stepped, "older") == ""


async def test_a_pod_of_higher_priority_may_take_the_room() -> None:
    stepped = await full("n")
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    (first,) = leaving(stepped)
    stepped.api.add_pod("higher", UNITS, priority=9)
    await stepped.end(first)
    await stepped.settle()
    assert node_of(stepped, "higher") == "n"
    assert node_of(stepped, "high") == ""
    (second,) = leaving(stepped)
    await stepped.end(second)
    await stepped.settle()
    assert node_of(stepped, "high") == "n"


async def test_room_is_kept_while_the_binding_of_its_pod_is_refused() -> None:
    stepped = await full("n")
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    (victim,) = leaving(stepped)
    stepped.api.delete_pod(victim)
    await stepped.write(stepped.try_next(), Fate.BUSY)
    assert node_of(stepped, "high") == ""
    await stepped.try_in_vain("small", 1, priority=0)
    stepped.now_s += LONGEST_BACK_OFF_S
    await stepped.settle()
    assert node_of(stepped, "high") == "n"


async def test_what_victims_leave_beyond_the_claim_is_free_for_all() -> None:
    stepped = await full("n")
    stepped.api.add_pod("high", 1, priority=5)
    await stepped.settle()
    (victim,) = leaving(stepped)
    stepped.api.add_pod("small", UNITS - 1, priority=0)
    await stepped.end(victim)
    await stepped.settle()
    assert (node_of(stepped, "high"), node_of(stepped, "small")) == ("n", "n")


# -- after a failover ------------------------------------------------------------------------


async def test_a_new_leader_keeps_the_room_that_the_old_one_cleared() -> None:
    stepped = await full("n")
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    (victim,) = leaving(stepped)
    stepped.fail_over()
    stepped.api.protected = {"low0", "low1"}
    stepped.api.add_pod("small", 1, priority=0)
    stepped.api.add_pod("equal", 1, priority=5)
    await stepped.settle()
    await stepped.end(victim)
    await stepped.settle()
    assert node_of(stepped, "high") == "n"
    assert node_of(stepped, "small") == ""


async def test_a_new_leader_goes_on_where_the_old_one_had_evicted_only_one_of_two() -> None:
    stepped = await two_small_ones_in_the_way()
    stepped.api.add_pod("high", UNITS, priority=5)
    # Nomination, two dry runs, and the first victim: then the leader is gone.
    lost = Fate.LOST_REQUEST
    await stepped.write(stepped.try_next(), *[Fate.OK] * 5, *[lost] * 2)
    assert len(leaving(stepped)) == 1
    stepped.api.set_node("other", ill=False)
    stepped.api.set_spec("nodes", "other", unschedulable=True)
    stepped.tell()
    stepped.fail_over()
    await stepped.settle()
    assert set(leaving(stepped)) == {"small0", "small1"}


async def test_a_half_cleared_node_is_cleared_before_one_that_would_cost_less() -> None:
    stepped = await two_small_ones_in_the_way()
    stepped.api.set_node("m", ill=False)
    await stepped.place("one", UNITS)
    await stepped.place("other-king", UNITS, priority=9)
    stepped.api.set_spec("nodes", "m", unschedulable=True)
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.write(stepped.try_next(), *[Fate.OK] * 5, *[Fate.LOST_REQUEST] * 2)
    stepped.api.set_spec("nodes", "m", unschedulable=False)
    stepped.fail_over()
    await stepped.settle()
    assert set(leaving(stepped)) == {"small0", "small1"}


def test_a_new_scheduler_inherits_nothing_where_nothing_was_nominated() -> None:
    stepped = Stepped()
    stepped.api.set_node("n", ill=False)
    stepped.api.add_pod("p", 1, priority=5)
    assert len(started(stepped.api, lambda: 0.0).state.preemption_claims) == 0


async def test_a_pod_is_tried_again_when_its_victim_is_not_spared_any_more() -> None:
    stepped = await full("n")
    stepped.api.protected = {"low0", "low1"}
    stepped.api.add_pod("high", UNITS, priority=5)
    for _ in range(4):
        await stepped.settle()
        stepped.now_s += LONGEST_BACK_OFF_S
    stepped.api.protected = set()
    stepped.now_s = stepped.state.claims_due_s()
    assert stepped.now_s < stepped.state.queue.due_s()
    await stepped.settle()
    assert len(leaving(stepped)) == 1


async def test_a_pod_preempts_again_when_another_scheduler_takes_its_room() -> None:
    stepped = await full("m", "n")
    stepped.api.add_pod("high", UNITS, priority=5)
    await stepped.settle()
    (victim,) = leaving(stepped)
    node = node_of(stepped, victim)
    # Nobody knows which cards of the node this one holds, and it may not be evicted.
    stepped.api.add_pod("foreign", 1, priority=5, spec={"nodeName": node})
    await stepped.settle()
    assert {node_of(stepped, name) for name in leaving(stepped)} == {"m", "n"}
