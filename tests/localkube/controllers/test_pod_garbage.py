"""Pods do not outlive their nodes."""

from pathlib import Path

from kubeclient.resources import NODES, PODS
from localkube.controllers import pod_garbage
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod


async def _bound(desk: Desk, name: str, node: str) -> None:
    await desk.create(PODS, pod(name, "web"))
    await desk.bind(name, node)


async def test_pods_of_a_node_that_is_gone_go_at_once(tmp_path: Path) -> None:
    async with desk_for(tmp_path, pod_garbage.CONTROLLER) as desk:
        await desk.add_node("a")
        await desk.add_node("b")
        await _bound(desk, "one", "a")
        await _bound(desk, "two", "b")
        await desk.kube.delete(NODES, "a")
        await desk.settle()
        assert await desk.names(PODS) == ["two"]


async def test_a_finalizer_lets_others_see_that_it_failed(tmp_path: Path) -> None:
    async with desk_for(tmp_path, pod_garbage.CONTROLLER) as desk:
        await desk.add_node("a")
        await desk.create(PODS, pod("one", "web", finalizers=["example.com/hold"]))
        await desk.bind("one", "a")
        await desk.kube.delete(NODES, "a")
        await desk.settle()
        found = await desk.get(PODS, "one")
        assert found["status"]["phase"] == "Failed"
        reasons = {c["type"]: c.get("reason") for c in found["status"]["conditions"]}
        assert reasons["DisruptionTarget"] == "DeletionByPodGC"


async def test_a_finished_pod_keeps_its_end(tmp_path: Path) -> None:
    async with desk_for(tmp_path, pod_garbage.CONTROLLER) as desk:
        await desk.add_node("a")
        made = await desk.create(PODS, pod("one", "web", finalizers=["example.com/hold"]))
        await desk.bind("one", "a")
        await desk.set_phase(made, "Succeeded")
        await desk.kube.delete(NODES, "a")
        await desk.settle()
        assert (await desk.get(PODS, "one"))["status"]["phase"] == "Succeeded"


async def test_pods_without_a_node_wait(tmp_path: Path) -> None:
    async with desk_for(tmp_path, pod_garbage.CONTROLLER) as desk:
        await desk.create(PODS, pod("one", "web"))
        await desk.settle()
        assert await desk.names(PODS) == ["one"]
