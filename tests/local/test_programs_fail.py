"""An exception in a program that gpupool adds: the cluster goes on, and the program comes back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from gpupool.agent.run import run_agent
from gpupool.local import cluster as gpu_cluster
from gpupool.local.cluster_setup import Prepared, Wish, set_up_directory
from gpupool.local.home import Home
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS, NODES, PODS
from localkube import assembly
from localkube.assembly import RunningCluster
from tests.localkube.bombs import Bomb, Bombs

PATIENCE_S = 60.0
SHARE = {"limits": {"aliyun.com/gpu-mem": "1"}}


@contextlib.asynccontextmanager
async def running(home: Home) -> AsyncIterator[RunningCluster]:
    prepared = set_up_directory(home, Wish(port=0))
    assert isinstance(prepared, Prepared)
    stop = asyncio.Event()
    ready: asyncio.Future[RunningCluster] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        gpu_cluster.run_cluster(prepared.settings, ready=ready.set_result, stop=stop)
    )
    try:
        await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield ready.result()
    finally:
        stop.set()
        await task


async def eventually(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def gpu_pod(name: str) -> Obj:
    container = {"name": "c", "image": "pause", "resources": SHARE}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


async def runs_a_gpu_pod(cluster: RunningCluster, name: str) -> None:
    kube = cluster.admin()

    async def created() -> bool:
        try:
            await kube.create(PODS, gpu_pod(name))
        except Refused as error:  # admission is not back yet
            if "pods.gpupool.io" not in str(error):
                raise
            return False
        return True

    await eventually(created)

    async def is_running() -> bool:
        pod = await kube.get(PODS, name, "default")
        return pod["status"].get("phase") == "Running" and bool(pod["metadata"]["annotations"])

    await eventually(is_running)


async def test_every_program_of_gpupool_comes_back_and_the_others_go_on(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    bombs = Bombs()
    monkeypatch.setattr(assembly, "Supervisor", bombs.supervisor())
    async with running(home) as cluster:
        await runs_a_gpu_pod(cluster, "before")
        for name in ("scheduler", "admission", "nodepool-controller", "pool-autoscaler"):
            before = bombs.starts.copy()
            bombs.throw(name)

            async def started_again(name: str = name, wanted: int = before[name] + 1) -> bool:
                return bombs.starts[name] == wanted

            await eventually(started_again)
            assert [check.name for check in cluster.health.failing()] == [name]
            bombs.forgive(name)
            before[name] += 1
            assert {name: bombs.starts[name] for name in before} == before  # no other
            await runs_a_gpu_pod(cluster, f"after-{name}")


async def test_an_exception_in_one_agent_ends_that_container_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, started, fuses = run_agent, list[str](), dict[str, asyncio.Event]()

    async def bombed(settings: Any, *rest: Any) -> None:
        started.append(settings.node)
        fuse = fuses[settings.node] = asyncio.Event()

        async def explode() -> None:
            await fuse.wait()
            raise Bomb("thrown into an agent")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(real(settings, *rest))
            tasks.create_task(explode())

    monkeypatch.setattr(gpu_cluster, "run_agent", bombed)
    async with running(home) as cluster:
        kube = cluster.admin()

        async def all_run() -> bool:
            nodes = (await kube.list(NODES)).items
            with_cards = [n for n in nodes if "gpupool.io/inventory" in str(n["metadata"])]
            return len(with_cards) == len(fuses) == 4  # the GPU nodes of the default cluster

        await eventually(all_run)
        victim = started[0]
        others = sorted(set(started) - {victim})
        fuses[victim].set()

        async def back() -> bool:
            return started.count(victim) == 2

        await eventually(back)
        assert sorted(started) == sorted([victim, victim, *others])
        assert cluster.health.failing() == []  # it is a container, and its pod tells

        async def told() -> bool:
            pods = (await kube.list(PODS, "kube-system")).items
            counts = [
                status["restartCount"]
                for pod in pods
                if pod["spec"].get("nodeName") == victim
                for status in pod["status"].get("containerStatuses") or ()
            ]
            return counts == [1]

        await eventually(told)
        await runs_a_gpu_pod(cluster, "after")
        assert not [
            event for event in (await kube.list(EVENTS)).items if event["reason"] == "ProgramFailed"
        ]
