"""A share that grows stays within the quotas of its namespace."""

import asyncio
from pathlib import Path

from gpupool.orders.shares import resize
from gpupool.scheduler.run import Scheduler
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import RESOURCE_QUOTAS
from tests.scheduler.world import add_node, add_pods, bound, gpu_pod, scheduling, world

UNITS = "requests.aliyun.com/gpu-mem"
WAIT_S = 60.0


async def add_quota(
    kube: Kube, scheduler: Scheduler, hard: int, used: int, **scopes: object
) -> None:
    """Set the usage that the API server counts, and wait until the scheduler has seen it."""
    spec: Obj = {"hard": {UNITS: str(hard)}, **scopes}
    metadata = {"name": "gpus", "namespace": "default"}
    await kube.create(RESOURCE_QUOTAS, {"metadata": metadata, "spec": spec})
    status = {"hard": spec["hard"], "used": {UNITS: str(used)}}
    await kube.patch(RESOURCE_QUOTAS.path("default", "gpus", "status"), {"status": status})
    async with asyncio.timeout(WAIT_S):
        while [quota.used for quota in scheduler.state.quotas.values()] != [used]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def grown(kube: Kube, pod: str, units: int) -> str:
    return await resize(kube, ("default", pod), "", units, WAIT_S)


async def two_pods(kube: Kube) -> None:
    """Pods with 3 units each, on cards with room to grow."""
    await add_node(kube, "n", 2)
    await add_pods(kube, gpu_pod("a", units=3), gpu_pod("b", units=3))
    await bound(kube, 2)


async def test_a_share_grows_up_to_the_quota_and_no_further(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await two_pods(kube)
        await add_quota(kube, scheduler, hard=10, used=6)
        assert await grown(kube, "a", 8) == (
            "refused: quota gpus of namespace default has 10 units of gpu-mem; "
            "others have 3, so this pod can have 7, not 8"
        )
        assert (await grown(kube, "a", 7)).startswith("done: ")


async def test_growth_of_other_pods_counts_against_the_quota(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await two_pods(kube)
        await add_quota(kube, scheduler, hard=10, used=6)
        assert (await grown(kube, "a", 6)).startswith("done: ")
        assert "others have 6, so this pod can have 4, not 5" in await grown(kube, "b", 5)
        assert (await grown(kube, "b", 4)).startswith("done: ")


async def test_a_quota_with_other_scopes_is_ignored(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await two_pods(kube)
        high = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
        selector = {"matchExpressions": [high]}
        await add_quota(kube, scheduler, hard=0, used=0, scopeSelector=selector)
        assert (await grown(kube, "a", 8)).startswith("done: ")


async def test_a_deleted_quota_is_ignored(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await two_pods(kube)
        await add_quota(kube, scheduler, hard=6, used=6)
        assert "can have 3, not 4" in await grown(kube, "a", 4)
        await kube.delete(RESOURCE_QUOTAS, "gpus", "default")
        async with asyncio.timeout(WAIT_S):
            while scheduler.state.quotas:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await grown(kube, "a", 4)).startswith("done: ")
