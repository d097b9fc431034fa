"""Pod groups: placed together or not at all, never block each other, and report their wait."""

from pathlib import Path

import pytest

from gpupool.contract.names import LABEL_POD_GROUP, LABEL_POD_GROUP_MIN
from gpupool.scheduler.cycle import GROUP_PATIENCE_S
from gpupool.scheduler.groups import Group, Groups, group_of
from gpupool.scheduler.run import Scheduler, SchedulerSettings
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.scheduler.model_api import ModelApi
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


@pytest.mark.parametrize(
    ("text", "least"), [("3", 3), ("", 1), ("-1", 1), ("x", 1), ("0", 1), ("9" * 30, 1)]
)
def test_a_bad_minimum_of_a_group_counts_as_one(text: str, least: int) -> None:
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: text}
    assert group_of("default", labels) == Group("default", "g", least)
    assert group_of("default", {}) is None


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


def test_a_pod_can_leave_its_group() -> None:
    groups, group = Groups(), Group("default", "g", 2)
    groups.put("u", group)
    assert set(groups.members(group)) == {"u"}
    groups.put("u", None)
    assert not groups.members(group)
