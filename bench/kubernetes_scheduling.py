"""Pods bound per second on a real kube-apiserver: kube-scheduler, gpupool, and a bare loop.

    python -m bench.kubernetes_scheduling --nodes 1000 5000 --pods 2000

Nodes are made by API, with eight whole cards each; pods ask for one card, and all exist before a
scheduler starts. The rate is that of the middle 80 %: starting up and the last few are left out.
The bare loop posts Bindings to the same server: the ceiling for anybody who binds one by one.
Beside the rate is what the schedulers themselves (not the server) took of the CPU for each pod,
their start included: that says more than the rate where others use the machine as well.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import aiohttp
import orjson

from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import ANNOTATION_INVENTORY, RESOURCE_GPU
from gpupool.contract.objects import Obj
from gpupool.core.gpu import Card, Inventory
from gpupool.kube.client import Kube
from gpupool.kube.credentials import find_access
from gpupool.kube.errors import AlreadyExists
from gpupool.kube.https import connected
from gpupool.kube.mirror import Mirror
from gpupool.kube.resources import NODES, PODS, SERVICE_ACCOUNTS
from gpupool.scheduler.extender_server import PREFIX
from gpupool.scheduler.kube_scheduler_config import kube_scheduler_config
from testbed import build
from testbed.controlplane import ControlPlane
from testbed.processes import Child, free_ports, wait_until

CARDS = 8
_AT_ONCE = 64
_AT_ONCE_GONE: Obj = {"gracePeriodSeconds": 0}
_RAISED_QPS = 5000
_LIMIT_S = 600.0
_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "made by API"}


def node(name: str) -> Obj:
    cards = tuple(Card(i, f"GPU-{name}-{i}", "Tesla T4", 15360) for i in range(CARDS))
    amount = {"cpu": "96", "memory": "384Gi", "pods": "110", RESOURCE_GPU: str(CARDS)}
    annotations = {ANNOTATION_INVENTORY: inventory_text(Inventory(cards))}
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": annotations,
        },
        "status": {"capacity": amount, "allocatable": amount, "conditions": [_READY]},
    }


def pod(name: str, scheduler: str) -> Obj:
    container = {"name": "main", "image": "none", "resources": {"limits": {RESOURCE_GPU: "1"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


async def each(count: int, act: Callable[[int], object]) -> None:
    """`act(number)` for all numbers, some at a time."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await act(number)  # type: ignore[misc]

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


class Watch:
    """When pods were seen to be bound."""

    def __init__(self, kube: Kube, count: int) -> None:
        self._seen: list[float] = []
        self._count = count
        self._done = asyncio.Event()
        self._mirror = Mirror(kube, PODS)
        self._mirror.on_change(self._changed)

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        was = old is not None and bool(old["spec"].get("nodeName"))
        if new is not None and new["spec"].get("nodeName") and not was:
            self._seen.append(time.monotonic())
            if len(self._seen) == self._count:
                self._done.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From when everything has been read."""
        task = asyncio.create_task(self._mirror.run())
        try:
            await self._mirror.wait_synced()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def per_second(self) -> float:
        await asyncio.wait_for(self._done.wait(), _LIMIT_S)
        first, last = self._count // 10, self._count - self._count // 10
        return (last - first) / (self._seen[last - 1] - self._seen[first])


@contextlib.asynccontextmanager
async def control_plane(nodes: int) -> AsyncIterator[tuple[ControlPlane, Kube]]:
    flags = {"kube-apiserver": ["--disable-admission-plugins=TaintNodesByCondition"]}
    with ControlPlane(flags=flags) as plane:
        access = await find_access({}, kubeconfig=str(plane.kubeconfig))
        async with connected(access, "bench") as kube:
            account = {"metadata": {"name": "default", "namespace": "default"}}
            with contextlib.suppress(AlreadyExists):
                await kube.create(SERVICE_ACCOUNTS, account)
            await each(nodes, lambda n: kube.create(NODES, node(f"node-{n}")))
            yield plane, kube


@contextlib.asynccontextmanager
async def waiting_pods(kube: Kube, count: int, scheduler: str) -> AsyncIterator[None]:
    await each(count, lambda n: kube.create(PODS, pod(f"pod-{n}", scheduler)))
    try:
        yield
    finally:
        await each(count, lambda n: kube.delete(PODS, f"pod-{n}", "default", options=_AT_ONCE_GONE))


def kube_scheduler(plane: ControlPlane, folder: Path, qps: int, extender: int = 0) -> list[str]:
    """`extender` is the port at which it asks gpupool; 0: it decides alone."""
    connection: Obj = {"kubeconfig": str(plane.kubeconfig)}
    if qps:
        connection |= {"qps": qps, "burst": 2 * qps}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": connection,
    }
    if extender:
        config = {**kube_scheduler_config(f"http://127.0.0.1:{extender}"), **config}
    file = folder / "kube-scheduler.json"
    file.write_text(json.dumps(config))
    return [str(build.ensure("kube-scheduler")), f"--config={file}", "--secure-port=0"]


def gpupool(plane: ControlPlane, folder: Path) -> list[str]:
    flags = [f"--kubeconfig={plane.kubeconfig}", "--health-address="]
    return [sys.executable, "-m", "gpupool", "scheduler", *flags]


def extender(plane: ControlPlane, folder: Path, port: int) -> list[str]:
    flags = [f"--kubeconfig={plane.kubeconfig}", f"--address=127.0.0.1:{port}"]
    return [sys.executable, "-m", "gpupool", "extender", *flags]


Command = Callable[[ControlPlane, Path], list[str]]


class Figure(NamedTuple):
    per_second: float
    cpu_ms: float  # of the schedulers, for each pod

    def __str__(self) -> str:
        return f"{self.per_second:.0f}/s, {self.cpu_ms:.1f} ms"


async def by_programs(
    plane: ControlPlane, kube: Kube, pods: int, commands: Sequence[Command], ready: str = ""
) -> Figure:
    """`ready`: where the first says that the next may start."""
    watch = Watch(kube, pods)
    async with watch.running():
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
            folder, children = Path(name), []
            for number, command in enumerate(commands):
                child = Child(f"{number}", command(plane, folder), folder / f"{number}.log")
                running.callback(child.stop)
                children.append(child)
                if ready and not number:
                    await asyncio.to_thread(wait_until, lambda: _answers(ready), child, 60.0)
            rate = await watch.per_second()
            return Figure(rate, sum(_cpu_s(child.pid) for child in children) * 1000 / pods)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def by_hand(kube: Kube, nodes: int, pods: int) -> Figure:
    listed = (await kube.list(PODS)).items
    watch = Watch(kube, pods)
    async with watch.running():
        began_s = time.process_time()
        await each(pods, lambda n: kube.bind(listed[n], f"node-{n // CARDS % nodes}", {}))
        rate = await watch.per_second()
        return Figure(rate, (time.process_time() - began_s) * 1000 / pods)


async def filter_ms(plane: ControlPlane, kube: Kube, nodes: int, asked: int = 300) -> list[float]:
    """How long the extender takes for `filter` with all nodes, as kube-scheduler waits for it."""
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    names = [f"node-{n}" for n in range(nodes)]
    took_ms = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        child = Child("extender", extender(plane, folder, port), folder / "log")
        try:
            await asyncio.to_thread(wait_until, lambda: _answers(f"{url}/readyz"), child, 60.0)
            async with aiohttp.ClientSession() as session:
                for number in range(asked):
                    made = pod(f"pod-{number}", "default-scheduler")
                    made["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "1"}
                    body = {"Pod": made, "Nodes": None, "NodeNames": names}
                    raw, began_s = orjson.dumps(body), time.monotonic()
                    async with session.post(f"{url}{PREFIX}/filter", data=raw) as answer:
                        await answer.read()
                    took_ms.append((time.monotonic() - began_s) * 1000)
        finally:
            await asyncio.to_thread(child.stop)
    return sorted(took_ms)


async def measured(nodes: int, pods: int) -> dict[str, str]:
    """All contenders in turn, on one control plane; what each comes to, in words."""
    [port] = free_ports(1)
    asked: list[Command] = [
        partial(extender, port=port),
        partial(kube_scheduler, qps=_RAISED_QPS, extender=port),
    ]
    contenders: dict[str, tuple[str, list[Command], str]] = {
        "kube-scheduler, as it comes": (
            "default-scheduler",
            [partial(kube_scheduler, qps=0)],
            "",
        ),
        f"kube-scheduler, qps {_RAISED_QPS}": (
            "default-scheduler",
            [partial(kube_scheduler, qps=_RAISED_QPS)],
            "",
        ),
        "gpupool, asked by it": ("default-scheduler", asked, f"http://127.0.0.1:{port}/readyz"),
        "gpupool, second scheduler": ("gpupool-scheduler", [gpupool], ""),
    }
    found: dict[str, str] = {}
    async with control_plane(nodes) as (plane, kube):
        for title, (scheduler, commands, ready) in contenders.items():
            async with waiting_pods(kube, pods, scheduler):
                found[title] = str(await by_programs(plane, kube, pods, commands, ready))
        async with waiting_pods(kube, pods, "nobody"):
            found["bare loop of Bindings"] = str(await by_hand(kube, nodes, pods))
        took_ms = await filter_ms(plane, kube, nodes)
        p50, p99 = took_ms[len(took_ms) // 2], took_ms[len(took_ms) * 99 // 100]
        found["extender's filter, all nodes"] = f"p50 {p50:.1f}, p99 {p99:.1f} ms"
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Pods bound per second on a real kube-apiserver.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--pods", type=int, default=2000)
    options = parser.parse_args(arguments)
    columns = [asyncio.run(measured(nodes, options.pods)) for nodes in options.nodes]
    head = "".join(f"{f'{nodes:,} nodes':>24}" for nodes in options.nodes)
    print(f"{f'{options.pods:,} pods, {CARDS} cards a node':<30}{head}")
    for title in columns[0]:
        print(f"{title:<30}" + "".join(f"{column[title]:>24}" for column in columns))


if __name__ == "__main__":
    main()
