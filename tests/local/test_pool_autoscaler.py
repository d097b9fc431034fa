"""Pools grow while pods wait for room, and shrink when nodes have been empty for long."""

from pathlib import Path
from typing import Any

import pytest

from gpupool.contract import names
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.local import node_pool, pool_autoscaler
from gpupool.local.config.cluster_file import ClusterFile, parse_cluster
from gpupool.local.config.nodepools import NODE_POOLS, nodepool_crd, nodepool_object
from gpupool.local.config.spec import ClusterSpec, Quotas
from gpupool.local.pool_autoscaler import IDLE, _nodes_needed
from kubeclient.resources import NODES, PODS
from localkube.controllers.run import Controller
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod

TEXT = """
apiVersion: gpupool.io/v1alpha1
kind: Cluster
pools:
  - {name: fixed, instanceType: ecs.g6.xlarge, count: 1}
  - {name: elastic, instanceType: ecs.g6.xlarge, count: 0, autoscaling: {min: 0, max: 3}}
"""


TWIN = (
    TEXT
    + """
  - {name: twin, instanceType: ecs.g6.xlarge, count: 0, autoscaling: {min: 0, max: 3}}
"""
)


def _spec(text: str = TEXT) -> ClusterSpec:
    file = parse_cluster(text)
    assert isinstance(file, ClusterFile)
    return file.spec


def _controllers(spec: ClusterSpec) -> tuple[Controller, Controller]:
    quotas = Quotas()
    return (
        node_pool.controller(spec, lambda: quotas),
        pool_autoscaler.controller(spec),
    )


async def _begin(desk: Desk, spec: ClusterSpec) -> None:
    for pool in spec.pools:
        await desk.create(NODE_POOLS, nodepool_object(pool))
    await desk.settle()


async def _waiting_pod(desk: Desk, name: str, cpu: str, **spec: Any) -> None:
    made = pod(name, "web")
    made["spec"] |= spec
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    await desk.create(PODS, made)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    path = PODS.path("default", name, "status")
    await desk.kube.patch(path, {"status": {"conditions": [condition]}})


async def _count(desk: Desk, pool: str = "elastic") -> int:
    await desk.settle()
    return int((await desk.kube.get(NODE_POOLS, pool))["spec"].get("count", 0))


async def test_a_pool_grows_by_what_is_needed(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        for number in range(3):  # of four cores each node has, two pods take two each
            await _waiting_pod(desk, f"p{number}", "2")
        assert await _count(desk) == 2
        assert await _count(desk, "fixed") == 1
        assert desk.events("Autoscaled") == ["Scaled from 0 to 2 nodes"]


async def test_a_pool_does_not_grow_beyond_its_maximum(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        for number in range(9):
            await _waiting_pod(desk, f"p{number}", "3")
        assert await _count(desk) == 3


async def test_pods_that_fit_on_no_node_of_the_pool_do_not_make_it_grow(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        await _waiting_pod(desk, "huge", "64")
        await _waiting_pod(desk, "elsewhere", "1", nodeSelector={names.LABEL_POOL: "fixed"})
        assert await _count(desk) == 0


async def test_an_empty_pool_shrinks_after_a_while(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        await _waiting_pod(desk, "p", "3")
        assert await _count(desk) == 1
        await desk.delete(PODS, "p", {"gracePeriodSeconds": 0})
        desk.forward(1)
        assert await _count(desk) == 1
        desk.forward(IDLE.total_seconds() + 1)
        assert await _count(desk) == 0


async def test_a_busy_node_keeps_its_pool_as_it_is(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        await _waiting_pod(desk, "p", "3")
        assert await _count(desk) == 1
        nodes = [n for n in await desk.all(NODES) if node_pool.pool_name(n) == "elastic"]
        await desk.bind("p", nodes[0]["metadata"]["name"])
        for _ in range(3):
            desk.forward(IDLE.total_seconds() + 1)
            assert await _count(desk) == 1


def _request(number: int, cpu: int) -> PodRequest:
    return PodRequest(f"u{number}", "default", f"p{number}", resources={"cpu": cpu, "pods": 1})


EMPTY = NodeInfo("n", allocatable={"cpu": 4000, "pods": 10})


@pytest.mark.parametrize(
    ("pods", "limit", "needed"),
    [
        ([], 9, 0),
        ([1000, 1000, 1000, 1000], 9, 1),
        ([3000, 3000, 1000, 1000], 9, 2),  # the small ones fill up what the large ones leave
        ([4000] * 5, 3, 3),
        ([5000], 9, 0),
        ([5000, 1000], 9, 1),
        ([1000], 0, 0),
    ],
)
def test_waiting_pods_are_placed_one_by_one(pods: list[int], limit: int, needed: int) -> None:
    requests = [_request(number, cpu) for number, cpu in enumerate(pods)]
    assert _nodes_needed(requests, ClusterModel(), EMPTY, limit) == needed


def test_free_room_on_existing_nodes_is_used_first() -> None:
    room = ClusterModel()
    room.set_node(EMPTY)
    room.hold(_request(100, 2000), EMPTY.name)
    requests = [_request(number, 2000) for number in range(3)]
    assert _nodes_needed(requests, room, EMPTY, 9) == 1


async def test_two_pools_do_not_grow_for_the_same_pod(tmp_path: Path) -> None:
    spec = _spec(TWIN)
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        await _waiting_pod(desk, "p", "3")
        assert await _count(desk) + await _count(desk, "twin") == 1


async def test_pods_with_impossible_constraints_do_not_make_a_pool_grow(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"no": "pod"}}}
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        await _waiting_pod(desk, "p", "1", affinity={"podAffinity": rule})
        assert await _count(desk) == 0
