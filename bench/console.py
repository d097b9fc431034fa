"""How long the console takes for each page of a large cluster, and how much memory it holds.

The API server is a stand-in that answers lists from memory and never sends a change: what is
measured is the console. The engine's view of the cluster is the real one.
"""

import asyncio
import math
import resource
import statistics
import time
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import aiohttp
import orjson

from bench.console_browser import in_browser
from gpupool.cli.console import new_model
from gpupool.console.gpu_views import GpuViews
from gpupool.console.run import ConsoleSettings, run_console
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import ANNOTATION_INVENTORY, LABEL_CGPU, LABEL_POOL
from gpupool.core.gpu import (
    Allocation,
    Card,
    CardShare,
    ContainerGpus,
    Inventory,
    Isolation,
)
from kubeclient.client import Headers, Kube, Query
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

PAGES = (
    "overview",
    "map",
    "map/cards",
    "map?view=detail",
    "nodes",
    "pods",
    "waiting",
    "services",
    "nodes/node-0",
    "pods/team/p-0",
)
_TIMES = 10
_MEMORY_MIB, _UNITS = 16130, 15


def node(number: int, cards: int) -> Obj:
    name = f"node-{number}"
    inventory = Inventory(
        tuple(
            Card(index, f"GPU-{number}-{index}", "Tesla V100-SXM2-16GB", _MEMORY_MIB)
            for index in range(cards)
        )
    )
    offered = {"cpu": "96", "memory": "384Gi", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": "2026-11-17T00:00:00Z",
            "labels": {LABEL_POOL: f"pool-{number % 9}", LABEL_CGPU: "true"},
            "annotations": {ANNOTATION_INVENTORY: inventory_text(inventory)},
        },
        "spec": {},
        "status": {
            "capacity": offered,
            "allocatable": {**offered, "aliyun.com/gpu-mem": str(cards * _UNITS)},
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }


def pod(number: int, nodes: int, cards: int) -> Obj:
    where, index = number % nodes, number // nodes % cards
    share = CardShare(f"GPU-{where}-{index}", index, 3, 3 * _MEMORY_MIB // _UNITS, _UNITS)
    allocation = Allocation((ContainerGpus("c", (share,), Isolation.LIMIT),))
    limits = {"limits": {"aliyun.com/gpu-mem": "3"}}
    return {
        "metadata": {
            "name": f"p-{number}",
            "namespace": "team",
            "uid": f"p-{number}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-11-17T00:00:00Z",
            "annotations": allocation_annotations(allocation, now_ns=1),
        },
        "spec": {
            "nodeName": f"node-{where}",
            "containers": [{"name": "c", "image": "cuda", "resources": limits}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}],
        },
    }


class StandIn:
    """Answers as an API server on which nothing ever changes."""

    def __init__(self, nodes: int, cards: int, pods: int) -> None:
        self._lists = {
            "nodes": [node(each, cards) for each in range(nodes)],
            "pods": [pod(each, nodes, cards) for each in range(pods)],
        }

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        if method == "POST":  # a SelfSubjectAccessReview
            return 201, orjson.dumps({"status": {"allowed": True}})
        # There are no agents: whoever looks for them finds no pods.
        found = [] if "/kube-system/" in path else self._lists.get(path.rpartition("/")[2], [])
        answer: dict[str, Any] = {"items": found}
        return 200, orjson.dumps({**answer, "metadata": {"resourceVersion": "1"}})

    async def stream(
        self, path: str, *, query: Query, headers: Headers
    ) -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""


async def measure(nodes: int, cards: int, pods: int, *, with_browser: bool = False) -> list[Obj]:
    kube, settings = Kube(StandIn(nodes, cards, pods)), ConsoleSettings(key="key")
    listens: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    console = asyncio.create_task(run_console(kube, None, new_model, settings, listens.set_result))
    jar = aiohttp.CookieJar(unsafe=True)
    try:
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            home = f"http://127.0.0.1:{await listens}"
            await _took(session, f"{home}/?key=key")
            found = [
                await _page(session, f"{home}/clusters/cluster/{page}", page) for page in PAGES
            ]
        if with_browser:
            found.extend(await in_browser(home, "key"))
        return found
    finally:
        console.cancel()
        await asyncio.gather(console, return_exceptions=True)


async def _page(session: aiohttp.ClientSession, url: str, page: str) -> Obj:
    first_s, _, size = await _took(session, url)
    times = [await _took(session, url) for _ in range(_TIMES)]
    return {
        "page": page,
        "first ms": round(1000 * first_s),
        "first byte p95 ms": _p95(byte_s for _, byte_s, _ in times),
        "whole p50 ms": round(1000 * statistics.median(all_s for all_s, _, _ in times)),
        "whole p95 ms": _p95(all_s for all_s, _, _ in times),
        "KB": size // 1000,
    }


def _p95(seconds: Iterable[float]) -> int:
    found = sorted(seconds)
    return round(1000 * found[math.ceil(0.95 * len(found)) - 1])


async def _took(session: aiohttp.ClientSession, url: str) -> tuple[float, float, int]:
    """Seconds until all of it is there, seconds until the first byte, bytes."""
    began = time.perf_counter()
    async with session.get(url) as answer:
        answer.raise_for_status()
        first_s = time.perf_counter() - began
        size = len(await answer.read())
    return time.perf_counter() - began, first_s, size


def measure_change(nodes: int, cards: int, pods: int) -> Obj:
    """What one pod that goes costs the views of cards, which all pages share."""
    model = new_model()
    objects = {NODES: [node(each, cards) for each in range(nodes)]}
    objects[PODS] = [pod(each, nodes, cards) for each in range(pods)]
    for what, items in objects.items():
        for each in items:
            model.handlers[what](None, each)
    views = GpuViews(model.cluster)
    began = time.perf_counter()
    views.now()
    made = time.perf_counter()
    model.handlers[PODS](objects[PODS][0], None)
    changed = time.perf_counter()
    views.now()
    done = time.perf_counter()
    return {
        "views of all cards ms": round(1000 * (made - began), 1),
        "after one pod went ms": round(1000 * (done - changed), 1),
    }


def main() -> None:
    for nodes, cards, pods in ((8, 8, 40), (500, 8, 2_000), (5_000, 8, 20_000)):
        print(f"\n{nodes} nodes x {cards} cards, {pods} pods")
        for row in asyncio.run(measure(nodes, cards, pods, with_browser=True)):
            print("  ".join(f"{key} {value}" for key, value in row.items()))
        print(measure_change(nodes, cards, pods))
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"memory at most, with the stand-in's own objects: {rss} MiB")


if __name__ == "__main__":
    main()
