"""The scheduler end to end: on a real API server with a disk, in one process and on one core.

Pods bound per second: all pods are there, then the scheduler starts; until the last is bound.
From release to bind: the cluster is full and pods wait; one that runs is deleted; until the watch
shows a waiting one on its node.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson

from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import ANNOTATION_INVENTORY, LABEL_CGPU, RESOURCE_GPU_MEM
from gpupool.core.gpu import Card, Inventory
from gpupool.scheduler.run import Scheduler, SchedulerSettings
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from localkube.kubelet.fleet import Fleet
from localkube.kubelet.settings import FleetSettings

_CARDS = 8
_CARD_UNITS = 16
_SIZES = ((100, 1_000), (1_000, 10_000))  # nodes, pods
_RELEASES = 200
_NONE_WAIT_S = 120.0


def measure_scheduler() -> dict[str, Any]:
    return {
        "bursts": [asyncio.run(_burst(nodes, pods)) for nodes, pods in _SIZES],
        "release_to_bind": asyncio.run(_releases()),
    }


@contextlib.asynccontextmanager
async def _api() -> AsyncIterator[Kube]:
    with tempfile.TemporaryDirectory(prefix="gpupool-bench-") as name:
        directory = Path(name)
        fleet = Fleet(FleetSettings(directory / "pods"))
        server = build(directory, certificates.ensure(directory), StaticTokens(), fleet)
        try:
            await server.bootstrap(443)
            yield server.client(ADMIN)
        finally:
            server.close()


@contextlib.asynccontextmanager
async def _scheduler(kube: Kube) -> AsyncIterator[None]:
    scheduler = Scheduler(kube, SchedulerSettings())
    task = asyncio.create_task(scheduler.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _add_node(kube: Kube, name: str) -> None:
    cards = tuple(
        Card(index, f"GPU-{name}-{index}", "Card", _CARD_UNITS * 1024) for index in range(_CARDS)
    )
    metadata = {
        "name": name,
        "labels": {LABEL_CGPU: "true"},
        "annotations": {ANNOTATION_INVENTORY: inventory_text(Inventory(cards))},
    }
    made = await kube.create(NODES, {"metadata": metadata})
    amounts = {"cpu": "96", "memory": "512Gi", "pods": "250"}
    amounts[RESOURCE_GPU_MEM] = str(_CARDS * _CARD_UNITS)
    await kube.update_status(NODES, {**made, "status": {"allocatable": amounts}})
    await kube.patch(NODES.path(name=name), {"spec": {"taints": None}})


def _pod(name: str, units: int) -> Obj:
    resources = {"limits": {RESOURCE_GPU_MEM: str(units)}, "requests": {"cpu": "1"}}
    container = {"name": "main", "image": "train", "resources": resources}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "train"}},
        "spec": {"schedulerName": "gpupool-scheduler", "containers": [container]},
    }


async def _add(kube: Kube, pods: list[Obj]) -> None:
    for start in range(0, len(pods), 200):
        await asyncio.gather(*(kube.create(PODS, pod) for pod in pods[start : start + 200]))


async def _burst(nodes: int, pods: int) -> dict[str, Any]:
    async with _api() as kube:
        for number in range(nodes):
            await _add_node(kube, f"n{number}")
        await _add(kube, [_pod(f"p{i}", 1 + i % 8) for i in range(pods)])
        watch = _Bound(kube)
        began_s, cpu_s = time.monotonic(), time.process_time()
        async with watch, _scheduler(kube):
            await watch.until(pods)
        took_s = time.monotonic() - began_s
        return {
            "nodes": nodes,
            "pods": pods,
            "per_second": pods / took_s,
            "cpu_us": (time.process_time() - cpu_s) * 1e6 / pods,
        }


async def _releases() -> dict[str, Any]:
    """Each release frees one share, which is what each of the waiting pods wants."""
    async with _api() as kube:
        for number in range(20):
            await _add_node(kube, f"n{number}")
        full = 20 * _CARDS * 2
        await _add(kube, [_pod(f"p{i}", _CARD_UNITS // 2) for i in range(full)])
        watch = _Bound(kube)
        took_ms = []
        async with watch, _scheduler(kube):
            await watch.until(full)
            await _add(kube, [_pod(f"w{i}", _CARD_UNITS // 2) for i in range(_RELEASES)])
            await asyncio.sleep(1)  # until all of them were tried in vain
            for number in range(_RELEASES):
                began_s = time.monotonic()
                options = {"gracePeriodSeconds": 0}
                await kube.delete(PODS, f"p{number}", "default", options=options)
                await watch.until(full + number + 1)
                took_ms.append((time.monotonic() - began_s) * 1000)
        took_ms.sort()
        return {"p50_ms": took_ms[len(took_ms) // 2], "p99_ms": took_ms[len(took_ms) * 99 // 100]}


class _Bound:
    """Counts, by a watch, the pods that have got a node."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._names: set[str] = set()
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._follow())

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(_NONE_WAIT_S):
            while len(self._names) < count:
                self._more.clear()
                await self._more.wait()

    async def _follow(self) -> None:
        rest = b""
        async for chunk in self._kube.watch(PODS):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                pod = orjson.loads(line)["object"]
                if pod["spec"].get("nodeName"):
                    self._names.add(pod["metadata"]["name"])
            self._more.set()
