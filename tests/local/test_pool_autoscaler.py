"""Pools grow while pods wait for room, and shrink when nodes have been empty for long."""

from pathlib import Path
from typing import Any

from gpupool.contract import names
from gpupool.local import node_pool, pool_autoscaler
from gpupool.local.config.cluster_file import ClusterFile, parse_cluster
from gpupool.local.config.nodepools import NODE_POOLS, nodepool_crd, nodepool_object
from gpupool.local.config.spec import ClusterSpec, Quotas
from gpupool.local.pool_autoscaler import IDLE
from gpupool.scheduler.kept_words import RESERVED
from kubeclient.objects import Obj
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
        pool_autoscaler.controller(spec, lambda: quotas),
    )


async def _begin(desk: Desk, spec: ClusterSpec) -> None:
    for pool in spec.pools:
        await desk.create(NODE_POOLS, nodepool_object(pool))
    await desk.settle()


async def _waiting_pod(desk: Desk, name: str, cpu: str, **spec: Any) -> None:
    await _waiting(desk, name, {"requests": {"cpu": cpu}}, **spec)


async def _waiting(
    desk: Desk, name: str, resources: Obj, labels: Obj | None = None, why: str = "", **spec: Any
) -> None:
    made = pod(name, "web")
    made["metadata"]["labels"] |= labels or {}
    made["spec"] |= spec
    made["spec"]["containers"][0]["resources"] = resources
    await desk.create(PODS, made)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    condition |= {"message": why} if why else {}
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


async def test_a_pod_that_can_never_fit_keeps_no_pool_from_shrinking(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        await _waiting_pod(desk, "p", "3")
        assert await _count(desk) == 1
        await _waiting_pod(desk, "huge", "64")
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


GPU_POOLS = """
apiVersion: gpupool.io/v1alpha1
kind: Cluster
pools:
  - {name: fixed, instanceType: ecs.g6.xlarge, count: 1}
  - {name: eight, instanceType: ecs.gn6v-c8g1.16xlarge, count: 0, autoscaling: {min: 0, max: 3}}
  - {name: one, instanceType: ecs.gn6v-c8g1.2xlarge, count: 0, autoscaling: {min: 0, max: 3}}
  - name: shared
    instanceType: ecs.gn6v-c8g1.2xlarge
    count: 0
    autoscaling: {min: 0, max: 3}
    labels: {cgpu: "true", cgpu.disable.isolation: "false"}
"""


EIGHT = "count: 1, autoscaling: {min: 0, max: 1}"
EXPECTED = "expected in 24 h from then."


def _gpus(resource: str, amount: int) -> Obj:
    amounts = {f"{resource}": str(amount)}
    return {"limits": amounts, "requests": amounts}


async def _gpu_counts(desk: Desk) -> dict[str, int]:
    return {name: await _count(desk, name) for name in ("eight", "one", "shared")}


async def test_gpu_pools_grow_for_whole_cards_and_for_shares(tmp_path: Path) -> None:
    spec = _spec(GPU_POOLS)
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        await _waiting(desk, "small", _gpus("nvidia.com/gpu", 1))
        assert await _gpu_counts(desk) == {"eight": 0, "one": 1, "shared": 0}
        await _waiting(desk, "large", _gpus("nvidia.com/gpu", 4))
        assert await _gpu_counts(desk) == {"eight": 1, "one": 1, "shared": 0}
        for number in range(3):  # of 15 units of a card
            await _waiting(desk, f"share{number}", _gpus("aliyun.com/gpu-mem", 7))
        assert await _gpu_counts(desk) == {"eight": 1, "one": 1, "shared": 2}


def _reserved(node: str) -> str:
    """All eight cards of this node."""
    cards = ", ".join(map(str, range(8)))
    return f"{RESERVED} since 2026-01-01T00:00:00Z: room on {node}, cards {cards}, {EXPECTED}"


async def test_pools_grow_for_pods_that_may_not_use_room_that_is_kept(tmp_path: Path) -> None:
    """Cards are free, but the scheduler keeps them for a pod that has waited for longer."""
    spec = _spec(GPU_POOLS.replace("count: 0, autoscaling: {min: 0, max: 3}", EIGHT, 1))
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        (node,) = [n for n in await desk.all(NODES) if node_pool.pool_name(n) == "eight"]
        made = pod("runs", "web")
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "8"}}
        await desk.create(PODS, made)
        await desk.bind("runs", node["metadata"]["name"])
        large = _gpus("nvidia.com/gpu", 8)
        large["requests"] |= {"cpu": "60"}
        await _waiting(desk, "large", large, why=_reserved(node["metadata"]["name"]))
        await _waiting(desk, "small", _gpus("nvidia.com/gpu", 1))
        assert await _gpu_counts(desk) == {"eight": 1, "one": 1, "shared": 0}


async def test_what_can_never_fit_makes_no_pool_grow(tmp_path: Path) -> None:
    spec = _spec(GPU_POOLS)
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        await _waiting(desk, "many", _gpus("nvidia.com/gpu", 9))
        await _waiting(desk, "huge", _gpus("aliyun.com/gpu-mem", 16))
        labels = {names.LABEL_POD_GROUP: "g", names.LABEL_POD_GROUP_MIN: "4"}
        for number in range(4):  # three nodes of eight cards: room for three members
            await _waiting(desk, f"member{number}", _gpus("nvidia.com/gpu", 8), labels)
        assert await _gpu_counts(desk) == {"eight": 0, "one": 0, "shared": 0}


async def test_pools_grow_for_a_whole_group(tmp_path: Path) -> None:
    spec = _spec(GPU_POOLS)
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        labels = {names.LABEL_POD_GROUP: "g", names.LABEL_POD_GROUP_MIN: "2"}
        for number in range(2):
            await _waiting(desk, f"member{number}", _gpus("nvidia.com/gpu", 8), labels)
        assert await _gpu_counts(desk) == {"eight": 2, "one": 0, "shared": 0}


async def test_labels_that_agents_will_set_choose_the_pool(tmp_path: Path) -> None:
    spec = _spec(GPU_POOLS)
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        await _begin(desk, spec)
        chosen = {"aliyun.accelerator/nvidia_count": "8"}
        await _waiting(desk, "p", _gpus("nvidia.com/gpu", 1), nodeSelector=chosen)
        assert await _gpu_counts(desk) == {"eight": 1, "one": 0, "shared": 0}


async def _three_nodes(desk: Desk, spec: ClusterSpec) -> list[str]:
    """The names of three nodes of the elastic pool, without pods."""
    await _begin(desk, spec)
    await desk.patch(NODE_POOLS, "elastic", {"spec": {"count": 3}})
    await desk.settle()
    nodes = await desk.all(NODES)
    return [n["metadata"]["name"] for n in nodes if node_pool.pool_name(n) == "elastic"]


async def _run_on(desk: Desk, name: str, node: str) -> None:
    await desk.create(PODS, pod(name, "web"))
    await desk.bind(name, node)


async def test_nodes_that_are_on_their_way_out_are_not_counted_again(tmp_path: Path) -> None:
    spec = _spec()
    pools, autoscaler = _controllers(spec)
    # The autoscaler looks first, while the nodes that it does not want any more still exist.
    async with desk_for(tmp_path, autoscaler, pools, crds=[nodepool_crd()]) as desk:
        busy, *_ = await _three_nodes(desk, spec)
        await _run_on(desk, "p", busy)
        desk.forward(1)
        await desk.settle()
        desk.forward(IDLE.total_seconds() + 1)
        desk.waiting = {(0, key): None for number, key in desk.waiting if number == 0}
        assert await _count(desk) == 1
        left = [n["metadata"]["name"] for n in await desk.all(NODES)]
        assert busy in left
        assert "deletionTimestamp" not in (await desk.get(PODS, "p"))["metadata"]


async def test_a_node_with_ended_pods_goes_before_one_with_running_pods(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        first, second, third = await _three_nodes(desk, spec)
        await _run_on(desk, "on-first", first)
        await _run_on(desk, "on-second", second)
        for number in range(3):
            await _run_on(desk, f"ended{number}", third)
            path = PODS.path("default", f"ended{number}", "status")
            await desk.kube.patch(path, {"status": {"phase": "Succeeded"}})
        desk.forward(1)
        await desk.settle()
        desk.forward(IDLE.total_seconds() + 1)
        assert await _count(desk) == 2
        left = [n["metadata"]["name"] for n in await desk.all(NODES)]
        assert {first, second} <= set(left)


async def test_a_new_node_with_the_name_of_an_old_one_was_not_idle(tmp_path: Path) -> None:
    spec = _spec()
    async with desk_for(tmp_path, *_controllers(spec), crds=[nodepool_crd()]) as desk:
        before = await _three_nodes(desk, spec)
        desk.forward(1)
        await desk.settle()
        desk.forward(IDLE.total_seconds() + 1)
        assert await _count(desk) == 0
        await desk.patch(NODE_POOLS, "elastic", {"spec": {"count": 3}})
        assert await _count(desk) == 3
        assert set(before) <= set(await desk.names(NODES))
        desk.forward(1)
        assert await _count(desk) == 3
