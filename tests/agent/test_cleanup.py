"""Cleanup removes all that is ours and nothing else, and waits until our programs have ended."""

import pytest

from gpupool.agent.cleanup import StillThere, clean_up, wait_until_gone
from gpupool.contract.names import (
    ADMISSION,
    AGENT_DAEMON_SET,
    ANNOTATION_CORDONED_CARDS,
    ANNOTATION_FREED,
    LEASE_NAMESPACE,
    SCHEDULER_LEASE,
)
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import LEASES, NODES, PODS, SECRETS
from tests.agent.nodes import M40, NAME, Node

HERE = "kube-system"


def lease(holder: str) -> Obj:
    renewed = "2026-11-16T00:00:00.000000Z"
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"metadata": {"name": SCHEDULER_LEASE, "namespace": LEASE_NAMESPACE}, "spec": spec}


def agent() -> Obj:
    metadata = {"name": "agent-1", "namespace": HERE, "labels": {"name": AGENT_DAEMON_SET}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "agent", "image": "gpupool"}]}}


async def conditions(node: Node) -> list[str]:
    return [each["type"] for each in (await node.get())["status"].get("conditions", ())]


class Clock:
    """A clock that advances by this much each time it is read."""

    def __init__(self, step_s: float) -> None:
        self.now_s, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s


async def test_a_node_is_as_it_was_before_the_agent_ran(node: Node) -> None:
    await node.create({"mine": "stays"})
    node.insert([M40])
    async with node.agent(feature_labels=True):
        await node.wait_labels(nvidia_count="1")
        await node.wait(lambda: conditions(node))
    theirs = {ANNOTATION_CORDONED_CARDS: "GPU-1", ANNOTATION_FREED: "1"}
    await node.kube.patch(NODES.path(name=NAME), {"metadata": {"annotations": theirs}})

    assert await clean_up(node.kube, HERE) == 1
    found = await node.get()
    assert await node.labels() == {"mine": "stays"}
    assert found["metadata"]["annotations"] == {ANNOTATION_CORDONED_CARDS: "GPU-1"}
    assert not await conditions(node)
    assert await clean_up(node.kube, HERE) == 0


async def test_the_lease_and_the_secret_are_deleted(node: Node) -> None:
    secret: Obj = {"metadata": {"name": ADMISSION, "namespace": HERE}}
    await node.kube.create(SECRETS, secret)
    await node.kube.create(LEASES, lease(""))
    await clean_up(node.kube, HERE)
    with pytest.raises(NotFound):
        await node.kube.get(LEASES, SCHEDULER_LEASE, LEASE_NAMESPACE)
    with pytest.raises(NotFound):
        await node.kube.get(SECRETS, ADMISSION, HERE)


async def test_an_agent_that_runs_is_waited_for_and_named(node: Node) -> None:
    await node.kube.create(PODS, agent())
    with pytest.raises(StillThere, match="pod kube-system/agent-1"):
        await wait_until_gone(node.kube, HERE, 0.0, Clock(1.0))
    await node.kube.delete(PODS, "agent-1", HERE, options={"gracePeriodSeconds": 0})
    await wait_until_gone(node.kube, HERE, 0.0, Clock(1.0))


async def test_a_leader_is_named(node: Node) -> None:
    await node.kube.create(LEASES, lease("scheduler-1"))
    with pytest.raises(StillThere, match="scheduler-1, which holds the Lease"):
        await wait_until_gone(node.kube, HERE, 0.0, Clock(1.0))


async def test_a_killed_leader_is_ignored_when_its_lease_has_expired(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpupool.agent.cleanup._PAUSE_S", 0.0)
    await node.kube.create(LEASES, lease("scheduler-1"))
    clock = Clock(0.5)
    await wait_until_gone(node.kube, HERE, 600.0, clock)
    assert 15.0 < clock.now_s < 30.0
