"""Pod groups: placed together or not at all, never block each other, and report their wait."""

from pathlib import Path

import pytest

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from gpupool.scheduler.cycle import GROUP_PATIENCE_S
from gpupool.scheduler.groups import Group, Groups, Standing, group_of
from gpupool.scheduler.run import Scheduler, SchedulerSettings
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.scheduler.model_api import UNITS, Fate, ModelApi
from tests.scheduler.stepped import Stepped
from tests.scheduler.world import (
    CARD_UNITS,
    add_node,
    add_pods,
    bound,
    gpu_pod,
    scheduling,
    world,
)


def member(group: str, number: int, least: int = 2) -> Obj:
    pod = gpu_pod(f"{group}{number}", units=CARD_UNITS)
    pod["metadata"]["labels"] = {LABEL_POD_GROUP: group, LABEL_POD_GROUP_MIN: str(least)}
    return pod


async def test_two_groups_never_block_each_other(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 3)
        for number in range(2):  # one of each at a time
            await add_pods(kube, member("a", number), member("b", number))
        pods = await bound(kube, 2)
        assert len(pods) == 2
        [first] = {pod["metadata"]["labels"][LABEL_POD_GROUP] for pod in pods}
        for pod in pods:
            options = {"gracePeriodSeconds": 0}
            await kube.delete(PODS, pod["metadata"]["name"], "default", options=options)
        names = {pod["metadata"]["name"] for pod in await bound(kube, 2)}
        assert names == ({"b0", "b1"} if first == "a" else {"a0", "a1"})


async def test_more_members_than_the_minimum_do_not_block_the_group(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "n", 2)
        await add_pods(kube, *(member("a", number) for number in range(3)))
        async with scheduling(kube):
            await bound(kube, 2)
            await add_node(kube, "m", 1)
            await bound(kube, 3)


@pytest.mark.parametrize(("text", "least"), [("3", 3), ("", 1), ("0", 1), ("0000003", 3)])
def test_a_group_has_the_minimum_that_its_label_states(text: str, least: int) -> None:
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: text}
    assert group_of({"namespace": "default", "labels": labels}) == Group("default", "g", least)
    assert group_of({"namespace": "default"}) is None


@pytest.mark.parametrize("text", ["x", "-1", "2.5", "100001", "9" * 30])
async def test_a_pod_whose_group_has_a_bad_minimum_waits_and_says_why(text: str) -> None:
    stepped = with_nodes("n")
    stepped.api.add_pod("p", 1, labels={LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: text})
    assert await stepped.settle() == set()
    assert stepped.said("p") == (
        "not placed: this scheduler does not support label "
        f"{LABEL_POD_GROUP_MIN}={text} (want a number from 1 to 100000)"
    )


async def test_a_group_that_waits_for_long_says_for_how_long() -> None:
    now_s = [0.0]
    scheduler = Scheduler(Kube(ModelApi()), SchedulerSettings(clock=lambda: now_s[0]))
    pod = member("a", 0)
    pod["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    scheduler.state.pod_changed(None, pod)

    def said() -> str:
        uid = scheduler.state.queue.pop(now_s[0])
        assert uid == "u"
        assert not scheduler._cycle.try_pod(scheduler.state.pending[uid])
        return scheduler._reports._news[uid].why()

    assert said() == "pod group default/a waits for its pods: 1 of at least 2 are here."
    now_s[0] = GROUP_PATIENCE_S + 60
    assert said().endswith("are here. It has waited for 11 minutes.")


def with_nodes(*names: str) -> Stepped:
    stepped = Stepped()
    for name in names:
        stepped.api.set_node(name, ill=False)
    return stepped


def join(stepped: Stepped, *names: str, units: int = UNITS, least: int = 2, job: str = "") -> None:
    """Add pods to the group `g`."""
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: str(least)}
    owners = [{"uid": job, "controller": True}] if job else []
    for name in names:
        stepped.api.add_pod(name, units, labels=labels, ownerReferences=owners)


async def test_members_that_fit_start_without_one_that_fits_nowhere() -> None:
    stepped = with_nodes("n")
    join(stepped, "huge", units=100)
    join(stepped, "a", "b")
    assert await stepped.settle() == {"a", "b"}
    assert "Insufficient" in stepped.said("huge")


async def test_a_group_keeps_trying_its_members_when_the_first_one_was_left_out() -> None:
    stepped = with_nodes("n")
    join(stepped, "huge", units=100)
    join(stepped, "a", "b")
    await stepped.settle()
    stepped.api.set_node("m", ill=False)
    join(stepped, "c", "d")
    assert await stepped.settle() == {"a", "b", "c", "d"}


async def test_a_pending_member_that_is_being_deleted_does_not_count() -> None:
    stepped = with_nodes("n")
    join(stepped, "a")
    assert await stepped.settle() == set()
    stepped.api.terminate_pod("a")
    join(stepped, "b")
    assert await stepped.settle() == set()
    join(stepped, "c")
    assert await stepped.settle() == {"b", "c"}


async def test_a_bound_member_that_is_being_deleted_does_not_count() -> None:
    stepped = with_nodes("n", "m")
    join(stepped, "a", "b")
    assert await stepped.settle() == {"a", "b"}
    stepped.api.terminate_pod("a")
    stepped.api.terminate_pod("b")
    join(stepped, "c")
    assert await stepped.settle() == {"a", "b"}
    assert stepped.said("c").endswith("1 of at least 2 are here.")
    join(stepped, "d")
    assert await stepped.settle() == {"a", "b", "c", "d"}


async def test_a_member_that_replaces_a_terminating_one_joins_those_that_run() -> None:
    stepped = with_nodes("n", "m")
    join(stepped, "a", "b")
    await stepped.settle()
    stepped.api.terminate_pod("a")
    join(stepped, "c")
    assert await stepped.settle() == {"a", "b", "c"}


@pytest.mark.parametrize("done_first", [True, False])
async def test_a_member_is_tried_again_when_another_one_of_its_job_is_done(
    done_first: bool,
) -> None:
    stepped = with_nodes("n")
    join(stepped, "a", "b", job="j")
    await stepped.settle()
    stepped.api.finish_pod("b", "Failed")
    if done_first:
        stepped.api.finish_pod("a")
        join(stepped, "retry", job="j")
    else:
        join(stepped, "retry", job="j")
        await stepped.settle()
        stepped.api.finish_pod("a")
    assert "retry" in await stepped.settle()


async def test_the_pods_that_failed_are_replaced_together() -> None:
    stepped = with_nodes("n")
    join(stepped, "a", "b", job="j")
    await stepped.settle()
    for name in ("a", "b"):
        stepped.api.finish_pod(name, "Failed")
    join(stepped, "a2", job="j")
    assert "a2" not in await stepped.settle()
    join(stepped, "b2", job="j")
    assert {"a2", "b2"} <= await stepped.settle()


@pytest.mark.parametrize(("before", "after"), [("first", "second"), ("", "")])
async def test_pods_of_an_earlier_job_do_not_count_for_the_next_one(
    before: str, after: str
) -> None:
    """A CronJob gives all its Jobs the same labels. Pods without a controller are nobody's."""
    stepped = with_nodes("n")
    join(stepped, "a", "b", job=before)
    await stepped.settle()
    for name in ("a", "b"):
        stepped.api.finish_pod(name)
    join(stepped, "a2", job=after)
    assert "a2" not in await stepped.settle()
    join(stepped, "b2", job=after)
    assert {"a2", "b2"} <= await stepped.settle()


async def test_a_group_starts_when_another_scheduler_has_bound_the_member_that_was_missing() -> (
    None
):
    stepped = with_nodes("n", "m")  # nobody knows which cards of n the other one has
    join(stepped, "theirs", "ours")
    theirs = stepped.api.pods["theirs"]
    theirs["spec"]["schedulerName"] = "other"
    assert await stepped.settle() == set()
    stepped.api._bind(theirs, {"target": {"name": "n"}, "metadata": {}})
    assert await stepped.settle() == {"theirs", "ours"}


async def test_a_group_starts_when_the_member_with_the_largest_minimum_leaves() -> None:
    stepped = with_nodes("n")
    join(stepped, "a", "b")
    join(stepped, "c", least=3)
    assert await stepped.settle() == set()
    stepped.api.delete_pod("c")
    assert await stepped.settle() == {"a", "b"}


async def test_a_member_in_backoff_does_not_come_back_because_of_the_others() -> None:
    stepped = with_nodes("n")
    join(stepped, "a", "b")
    refused, accepted = stepped.try_next()
    await stepped.write([refused], Fate.BUSY)
    await stepped.write([accepted])
    assert await stepped.settle() == {"b"}
    assert stepped.backing_off() == 1
    join(stepped, "c", units=100, least=3)
    assert await stepped.settle() == {"b"}
    assert stepped.backing_off() == 1
    assert "after an error" in stepped.said("c")


async def test_a_terminating_pod_without_a_node_holds_nothing_for_its_unanswered_binding() -> None:
    stepped = with_nodes("n")
    stepped.api.add_pod("p", UNITS)
    await stepped.write(stepped.try_next(), Fate.LOST_REQUEST)
    assert stepped.state.ledger.assignment(stepped.uid("p")) is not None
    stepped.api.terminate_pod("p")
    stepped.tell()
    assert stepped.state.ledger.assignment(stepped.uid("p")) is None
    assert stepped.state.ledger.is_settled()


def test_a_pod_can_leave_its_group() -> None:
    groups, group = Groups(), Group("default", "g", 2)
    groups.put("u", group, Standing.WAITING)
    assert set(groups.waiting(group.key)) == {"u"}
    groups.put("u", None, None)
    assert not groups.waiting(group.key)
    assert not len(groups)
