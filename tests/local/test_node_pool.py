"""Node pools: as many nodes as wanted, within the quotas, drained before removal."""

from pathlib import Path
from typing import Any

import pytest

from gpupool.local import node_pool
from gpupool.local.config.cluster_file import ClusterFile, parse_cluster
from gpupool.local.config.nodepools import NODE_POOLS, nodepool_crd
from gpupool.local.config.spec import Quotas
from gpupool.local.drain import must_go
from gpupool.local.home import Home
from gpupool.local.machines import ClusterMachines, Machines, Wanted
from kubeclient.client import Kube
from kubeclient.errors import NotFound, Refused
from kubeclient.objects import Obj
from kubeclient.resources import DISRUPTION_BUDGETS, NODES, PODS
from localkube.controllers.run import Controller
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod

EMPTY = "apiVersion: gpupool.io/v1alpha1\nkind: Cluster\npools: []\n"
CRDS = (nodepool_crd(),)


def _controller(limit: int = 40) -> Controller:
    file = parse_cluster(EMPTY)
    assert isinstance(file, ClusterFile)
    quotas = Quotas(nodes_per_cluster=limit)
    return node_pool.controller(file.spec, lambda: quotas)


def pool(count: int, name: str = "a", **spec: Any) -> Obj:
    full = {"instanceType": "ecs.g6.xlarge", "count": count, **spec}
    head = {"apiVersion": NODE_POOLS.api_version, "kind": NODE_POOLS.kind}
    return {**head, "metadata": {"name": name}, "spec": full}


async def _settle(desk: Desk) -> None:
    """Runs the controller until it has nothing to do; every node is ready at once."""
    await desk.settle()
    for node in await desk.all(NODES):
        path = NODES.path(name=node["metadata"]["name"], subresource="status")
        ready = {"type": "Ready", "status": "True"}
        await desk.kube.patch(path, {"status": {"conditions": [ready]}})
    await desk.settle()


async def _status(desk: Desk, name: str = "a") -> Obj:
    await _settle(desk)
    found: Obj = (await desk.kube.get(NODE_POOLS, name))["status"]
    return found


async def _scale(desk: Desk, count: int) -> None:
    await desk.patch(NODE_POOLS, "a", {"spec": {"count": count}})
    await _settle(desk)


async def test_a_pool_is_initializing_until_its_nodes_are_ready(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(2))
        await desk.settle()
        first = (await desk.kube.get(NODE_POOLS, "a"))["status"]
        assert (first["phase"], first["nodes"], first["readyNodes"]) == ("Initializing", 2, 0)
        assert first["conditions"][0]["message"] == "0 of 2 nodes are ready"
        then = await _status(desk)
        assert (then["phase"], then["readyNodes"]) == ("Active", 2)


async def test_a_large_pool_counts_its_nodes_while_it_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk_for(tmp_path, _controller(limit=100), crds=CRDS) as desk:
        told: list[int] = []
        patch = type(desk.kube).patch

        async def heard(kube: Kube, path: str, body: Obj, **more: Any) -> Obj:
            if "nodes" in body.get("status", {}):
                told.append(body["status"]["nodes"])
            return await patch(kube, path, body, **more)

        monkeypatch.setattr(type(desk.kube), "patch", heard)
        await desk.create(NODE_POOLS, pool(45))
        await desk.settle()
        assert told == [20, 40, 45]


async def test_an_active_pool_stays_active_while_it_grows(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(1))
        await _settle(desk)
        await desk.patch(NODE_POOLS, "a", {"spec": {"count": 2}})
        await desk.settle()
        assert (await desk.kube.get(NODE_POOLS, "a"))["status"]["phase"] == "Active"


async def test_beyond_the_quota_no_node_is_created(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(limit=3), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(4))
        status = await _status(desk)
        assert status["conditions"][0]["reason"] == "QuotaExceeded"
        assert status["phase"] == "Failed"
        assert await desk.names(NODES) == []
        await _scale(desk, 3)
        assert len(await desk.names(NODES)) == 3
        assert (await _status(desk))["phase"] == "Active"


async def test_two_pools_share_the_quota(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(limit=3), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(2, "a"))
        await desk.create(NODE_POOLS, pool(2, "b"))
        await _settle(desk)
        assert len(await desk.names(NODES)) == 2


async def test_the_emptiest_node_is_removed_first(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(2))
        await _settle(desk)
        busy, empty = await desk.names(NODES)
        await desk.create(PODS, pod("p", "web"))
        await desk.bind("p", busy)
        await _scale(desk, 1)
        assert await desk.names(NODES) == [busy]
        assert desk.events("ScaledDown") == [f"Removed node {empty} from the pool"]


async def test_a_node_is_removed_when_its_pods_have_ended(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(1))
        await _settle(desk)
        (node,) = await desk.names(NODES)
        await desk.create(PODS, pod("p", "web"))
        await desk.bind("p", node)
        await desk.run_pods()
        await _scale(desk, 0)
        assert await desk.names(NODES) == [node]
        assert (await desk.kube.get(NODES, node))["spec"]["unschedulable"] is True
        assert "deletionTimestamp" in (await desk.get(PODS, "p"))["metadata"]
        await desk.finish_deletions()
        desk.forward(1)
        await desk.settle()
        assert await desk.names(NODES) == []


async def test_a_disruption_budget_keeps_the_pod_and_the_node(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(1))
        await _settle(desk)
        (node,) = await desk.names(NODES)
        await desk.create(PODS, pod("p", "web"))
        await desk.bind("p", node)
        await desk.run_pods()
        selector = {"matchLabels": {"app": "web"}}
        spec = {"selector": selector, "minAvailable": 1}
        await desk.create(DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
        status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
        status |= {"expectedPods": 1, "observedGeneration": 1}
        path = DISRUPTION_BUDGETS.path("default", "b", "status")
        await desk.kube.patch(path, {"status": status})
        await _scale(desk, 0)
        assert await desk.names(NODES) == [node]
        assert "deletionTimestamp" not in (await desk.get(PODS, "p"))["metadata"]


async def test_a_deleted_pool_is_removed_after_its_nodes(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(2))
        await _settle(desk)
        await desk.kube.delete(NODE_POOLS, "a")
        await desk.settle()
        assert await desk.names(NODES) == []
        desk.forward(1)
        await desk.settle()
        with pytest.raises(NotFound):
            await desk.kube.get(NODE_POOLS, "a")


async def test_a_node_that_was_deleted_by_hand_is_replaced(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(2))
        await _settle(desk)
        first = (await desk.names(NODES))[0]
        uid = (await desk.kube.get(NODES, first))["metadata"]["uid"]
        await desk.kube.delete(NODES, first)
        await _settle(desk)
        nodes = await desk.all(NODES)
        assert len(nodes) == 2
        assert uid not in [node["metadata"]["uid"] for node in nodes]


async def test_a_node_of_the_same_name_waits_until_the_old_nodes_pods_are_gone(
    tmp_path: Path,
) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(1))
        await _settle(desk)
        (name,) = await desk.names(NODES)
        await desk.create(PODS, pod("p", "web"))
        await desk.bind("p", name)
        await desk.kube.delete(NODES, name)
        await _settle(desk)
        assert await desk.names(NODES) == []
        await desk.delete(PODS, "p", {"gracePeriodSeconds": 0})
        desk.forward(1)
        await _settle(desk)
        assert await desk.names(NODES) == [name]


async def test_an_invalid_pool_is_reported_in_its_status(tmp_path: Path) -> None:
    async with desk_for(tmp_path, _controller(), crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(1, instanceType="ecs.nonsense"))
        status = await _status(desk)
        assert status["conditions"][0]["reason"] == "InvalidSpec"
        assert status["phase"] == "Failed"
        assert "ecs.nonsense" in status["conditions"][0]["message"]
        assert len(desk.events("InvalidSpec")) == 1


def test_daemon_set_pods_and_finished_pods_are_not_evicted() -> None:
    owner = {"kind": "DaemonSet", "controller": True}
    assert not must_go({"metadata": {"ownerReferences": [owner]}, "status": {"phase": "Running"}})
    assert not must_go({"metadata": {}, "status": {"phase": "Succeeded"}})
    assert must_go({"metadata": {}, "status": {"phase": "Running"}})
    assert must_go({"metadata": {}})


def aged(name: str, created: str, version: int, cordoned: bool = False) -> Obj:
    metadata = {"name": name, "creationTimestamp": created, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"unschedulable": True} if cordoned else {}}


def test_of_equally_busy_nodes_the_youngest_is_removed_first() -> None:
    nodes = [
        aged("a-2", "2026-01-01T00:00:00Z", 900),  # its kubelet wrote last
        aged("a-10", "2026-01-03T00:00:00Z", 7),
        aged("a-9", "2026-01-03T00:00:00Z", 800),
        aged("busy", "2026-01-04T00:00:00Z", 1),
        aged("cordoned", "2025-01-01T00:00:00Z", 2, cordoned=True),
    ]
    pods = {"busy": 3, "cordoned": 5}
    order = node_pool.in_order_of_removal(nodes, lambda name: pods.get(name, 0))
    names = [node["metadata"]["name"] for node in order]
    assert names == ["cordoned", "a-10", "a-9", "a-2", "busy"]


def _of_machines(tmp_path: Path, *names: str) -> tuple[Controller, Machines]:
    home = Home(tmp_path / "home")
    home.make("here", None)
    home.make("elsewhere", None)
    machines = Machines(home)
    machines.add("ecs.g6.xlarge", names)
    file = parse_cluster(EMPTY)
    assert isinstance(file, ClusterFile)
    own = ClusterMachines(machines, "here")
    return node_pool.controller(file.spec, Quotas, own), machines


def _users(machines: Machines) -> dict[str, str]:
    return {name: each.cluster for name, each in machines.all().items()}


async def test_a_pool_of_machines_has_their_names_and_gives_them_back(tmp_path: Path) -> None:
    controller, machines = _of_machines(tmp_path, "m1", "m2", "m3")
    async with desk_for(tmp_path, controller, crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(2, machines=["m1", "m3"]))
        assert (await _status(desk))["phase"] == "Active"
        assert await desk.names(NODES) == ["m1", "m3"]
        assert _users(machines) == {"m1": "here", "m2": "", "m3": "here"}
        await _scale(desk, 1)
        [left] = await desk.names(NODES)
        assert _users(machines) == {"m1": "", "m2": "", "m3": "", left: "here"}
        await desk.kube.delete(NODE_POOLS, "a")
        await _settle(desk)
        assert await desk.names(NODES) == []
        assert set(_users(machines).values()) == {""}


async def test_a_pool_waits_for_a_machine_of_another_cluster(tmp_path: Path) -> None:
    controller, machines = _of_machines(tmp_path, "m1", "m2")
    machines.claim("elsewhere", (Wanted("p", "ecs.g6.xlarge", ("m2",)),))
    async with desk_for(tmp_path, controller, crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(2, machines=["m1", "m2"]))
        status = await _status(desk)
        assert status["phase"] == "Failed"
        assert status["conditions"][0]["reason"] == "MachinesUnavailable"
        assert '"m2" is a node of cluster "elsewhere"' in status["conditions"][0]["message"]
        assert await desk.names(NODES) == []
        assert _users(machines)["m1"] == ""
        machines.release("elsewhere")
        desk.forward(1)
        assert (await _status(desk))["phase"] == "Active"
        assert await desk.names(NODES) == ["m1", "m2"]


async def test_machines_of_a_pool_that_was_lost_go_back(tmp_path: Path) -> None:
    """The server was killed after it took a machine, and its pool was deleted since."""
    controller, machines = _of_machines(tmp_path, "m1")
    machines.claim("here", (Wanted("lost", "ecs.g6.xlarge", ("m1",)),))
    async with desk_for(tmp_path, controller, crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(0))
        await _settle(desk)
        assert _users(machines) == {"m1": ""}


async def test_two_pools_do_not_share_a_machine(tmp_path: Path) -> None:
    controller, _ = _of_machines(tmp_path, "m1")
    async with desk_for(tmp_path, controller, crds=CRDS) as desk:
        await desk.create(NODE_POOLS, pool(1, machines=["m1"]))
        await _settle(desk)
        await desk.create(NODE_POOLS, pool(1, "b", machines=["m1"]))
        status = await _status(desk, "b")
        assert status["conditions"][0]["reason"] == "MachinesUnavailable"
        assert "found 0 more machines" in status["conditions"][0]["message"]


async def test_a_pool_has_no_more_nodes_than_machines(tmp_path: Path) -> None:
    controller, _ = _of_machines(tmp_path, "m1")
    async with desk_for(tmp_path, controller, crds=CRDS) as desk:
        with pytest.raises(Refused, match="as many nodes as the pool has machines"):
            await desk.create(NODE_POOLS, pool(2, machines=["m1"]))
