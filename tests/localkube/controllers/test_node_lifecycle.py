"""Nodes without heartbeats, their taints, and the eviction of their pods."""

from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.controllers import node_lifecycle
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod

READY, NOT_READY = "True", "False"


async def _ready(desk: Desk, name: str = "n", status: str = READY) -> None:
    """Posts the node's condition Ready, with the current time."""
    now = desk.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready",
        "status": status,
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    path = NODES.path(name=name, subresource="status")
    await desk.kube.patch(path, {"status": {"conditions": [ready]}})


async def _taints(desk: Desk, name: str = "n") -> set[tuple[str, str]]:
    await desk.settle()
    taints = (await desk.kube.get(NODES, name))["spec"].get("taints") or ()
    return {(t["key"].removeprefix("node.kubernetes.io/"), t["effect"]) for t in taints}


async def _bound_pod(desk: Desk, name: str, **spec: Any) -> None:
    made = pod(name, "web")
    made["spec"] |= spec
    await desk.create(PODS, made)
    await desk.bind(name, "n")
    await desk.run_pods()


async def test_a_ready_node_has_no_taints(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        await _ready(desk)
        assert await _taints(desk) == set()


async def test_a_node_is_tainted_while_it_is_not_ready(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        await _ready(desk, status=NOT_READY)
        assert await _taints(desk) == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
        await _ready(desk)
        assert await _taints(desk) == set()


async def test_a_silent_node_is_unknown_and_unreachable(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        await _ready(desk)
        desk.forward(39)
        assert await _taints(desk) == set()
        desk.forward(10)
        assert await _taints(desk) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
        found = {c["type"]: c for c in (await desk.kube.get(NODES, "n"))["status"]["conditions"]}
        assert found["Ready"]["status"] == "Unknown"
        assert found["Ready"]["message"] == "Kubelet stopped posting node status."
        assert found["DiskPressure"]["message"] == "Kubelet never posted node status."
        assert desk.events("NodeNotReady") == ["Node n status is now: NodeNotReady"]


async def test_other_conditions_stay_as_they_are(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        own = {"type": "CardsHealthy", "status": "True", "reason": "r", "message": "m"}
        path = NODES.path(name="n", subresource="status")
        await desk.kube.patch(path, {"status": {"conditions": [own]}})
        desk.forward(50)
        await desk.settle()
        found = {c["type"]: c for c in (await desk.kube.get(NODES, "n"))["status"]["conditions"]}
        assert found["CardsHealthy"]["status"] == "True"


async def test_peoples_own_taints_stay(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        own = {"key": "team", "value": "ml", "effect": "NoSchedule"}
        await desk.add_node("n")
        await desk.patch(NODES, "n", {"spec": {"taints": [own]}})
        await _ready(desk, status=NOT_READY)
        assert ("team", "NoSchedule") in await _taints(desk)
        await _ready(desk)
        assert await _taints(desk) == {("team", "NoSchedule")}


async def test_a_cordoned_node_says_so_in_a_taint(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        await desk.patch(NODES, "n", {"spec": {"unschedulable": True}})
        await _ready(desk)
        assert await _taints(desk) == {("unschedulable", "NoSchedule")}


@pytest.mark.parametrize(
    ("condition", "taint"),
    [("DiskPressure", "disk-pressure"), ("NetworkUnavailable", "network-unavailable")],
)
async def test_pressure_becomes_a_taint(tmp_path: Path, condition: str, taint: str) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        await _ready(desk)
        found = (await desk.kube.get(NODES, "n"))["status"]["conditions"]
        more = [*found, {"type": condition, "status": "True"}]
        path = NODES.path(name="n", subresource="status")
        await desk.kube.patch(path, {"status": {"conditions": more}})
        assert await _taints(desk) == {(taint, "NoSchedule")}


async def test_pods_of_an_unready_node_are_not_ready(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        await _ready(desk)
        await _bound_pod(desk, "one")
        await _ready(desk, status=NOT_READY)
        await desk.settle()
        conditions = (await desk.get(PODS, "one"))["status"]["conditions"]
        assert {c["type"]: c["status"] for c in conditions}["Ready"] == "False"
        assert "Node is not ready" in desk.events("NodeNotReady")


async def test_pods_leave_when_they_no_longer_tolerate(tmp_path: Path) -> None:
    forever = {"operator": "Exists"}
    soon: Obj = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 10,
    }
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        await desk.add_node("n")
        await _ready(desk)
        await _bound_pod(desk, "stays", tolerations=[forever])
        await _bound_pod(desk, "leaves", tolerations=[soon])
        await _bound_pod(desk, "default")
        await _ready(desk, status=NOT_READY)
        await desk.settle()

        async def leaving() -> list[str]:
            pods = await desk.all(PODS)
            return [p["metadata"]["name"] for p in pods if "deletionTimestamp" in p["metadata"]]

        assert await leaving() == []
        desk.forward(11)
        await _ready(desk, status=NOT_READY)
        await desk.settle()
        assert await leaving() == ["leaves"]
        desk.forward(300)
        await _ready(desk, status=NOT_READY)
        await desk.settle()
        assert await leaving() == ["default", "leaves"]
