"""How fast pods get their nodes on a real kube-apiserver, and what it takes of the CPU.

Nodes are made by API, with eight whole cards each; pods ask for one card, and all exist before a
scheduler starts. Measured is the middle 80 % of them: starting up and the last few are left out.
Server and schedulers share the cores, or each has a half of its own: in most clusters they are on
different machines, where neither takes the other's time.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.apiserver import cpu_s
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import ANNOTATION_INVENTORY, RESOURCE_GPU
from gpupool.core.gpu import Card, Inventory
from gpupool.scheduler.run import WRITES_IN_FLIGHT
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.errors import AlreadyExists
from kubeclient.https import connected
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS, SERVICE_ACCOUNTS
from testbed.controlplane import ControlPlane
from testbed.processes import Child, answers, wait_until

CARDS = 8
_AT_ONCE_GONE: Obj = {"gracePeriodSeconds": 0}
_LIMIT_S = 600.0
_NOT_COUNTED = 20  # single pods at first: the scheduler starts, and its caches fill
_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "made by API"}


class Figure(NamedTuple):
    per_second: float
    scheduler_ms: float  # of CPU for each pod: the schedulers, or the loop
    first_ms: float  # of these: the first program, which is the extender where there are two
    server_ms: float  # kube-apiserver and etcd


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


async def each(count: int, act: Callable[[int], Awaitable[object]]) -> None:
    """`act(number)` for all numbers, as many at a time as our scheduler writes."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await act(number)

    await asyncio.gather(*(work() for _ in range(WRITES_IN_FLIGHT)))


def _on(cores: Sequence[int]) -> None:
    """This process, and all that it starts from now on."""
    os.sched_setaffinity(0, cores)


@contextlib.contextmanager
def _started(plane: ControlPlane, apart: bool) -> Iterator[None]:
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2 if apart else 0
    try:
        _on(cores[:half] or cores)
        with plane:
            _on(cores[half:])
            yield
    finally:
        _on(cores)


@contextlib.asynccontextmanager
async def control_plane(nodes: int, apart: bool) -> AsyncIterator[tuple[ControlPlane, Kube]]:
    """`apart`: on cores of its own."""
    flags = {"kube-apiserver": ["--disable-admission-plugins=TaintNodesByCondition"]}
    with _started(plane := ControlPlane(flags=flags), apart):
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


class Watch:
    """Sees pods being bound; looks at the clocks when the middle 80 % begin and end."""

    def __init__(self, kube: Kube, count: int, servers: Sequence[int]) -> None:
        self.schedulers: list[int] = []  # processes
        self._servers = servers
        self._first, self._last = count // 10, count - count // 10
        self._count = count
        self._seen = 0
        self._looks: list[tuple[float, ...]] = []
        self._done = asyncio.Event()
        self._mirror = Mirror(kube, PODS)
        self._mirror.on_change(self._changed)

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        was = old is not None and bool(old["spec"].get("nodeName"))
        if was or new is None or not new["spec"].get("nodeName"):
            return
        self._seen += 1
        if self._seen in (self._first, self._last):
            whose = (self.schedulers, self.schedulers[:1], self._servers)
            self._looks.append((time.monotonic(), *map(cpu_s, whose)))
        if self._seen == self._count:
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

    async def figure(self) -> Figure:
        await asyncio.wait_for(self._done.wait(), _LIMIT_S)
        began, ended = self._looks
        wall_s, *cpu_s = (end - begin for begin, end in zip(began, ended, strict=True))
        pods = self._last - self._first
        return Figure(pods / wall_s, *(1000 * seconds / pods for seconds in cpu_s))


Command = Callable[[ControlPlane, Path], list[str]]


@contextlib.asynccontextmanager
async def programs(
    plane: ControlPlane, commands: Sequence[Command], ready: str
) -> AsyncIterator[list[int]]:
    """Their process ids. `ready`: where the first says that the next may start."""
    pids = []
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        folder = Path(name)
        for number, command in enumerate(commands):
            child = Child(f"{number}", command(plane, folder), folder / f"{number}.log")
            running.callback(child.stop)
            pids.append(child.pid)
            if ready and not number:
                await until_it_answers(ready, child)
        yield pids


async def by_programs(
    plane: ControlPlane, kube: Kube, pods: int, commands: Sequence[Command], ready: str = ""
) -> Figure:
    watch = Watch(kube, pods, plane.pids)
    async with watch.running(), programs(plane, commands, ready) as pids:
        watch.schedulers.extend(pids)
        return await watch.figure()


async def one_by_one_ms(kube: Kube, pods: int, scheduler: str) -> list[float]:
    """From before a pod is sent until a watch shows its node, each on an idle cluster; sorted."""
    bound: dict[str, asyncio.Event] = {}
    mirror = Mirror(kube, PODS)

    def changed(_: Obj | None, new: Obj | None) -> None:
        if new is not None and new["spec"].get("nodeName"):
            bound[new["metadata"]["name"]].set()

    mirror.on_change(changed)
    watching, took_ms = asyncio.create_task(mirror.run()), []
    try:
        await mirror.wait_synced()
        for number in range(-_NOT_COUNTED, pods):
            made = pod(f"single-{number + _NOT_COUNTED}", scheduler)
            seen = bound[made["metadata"]["name"]] = asyncio.Event()
            began_s = time.monotonic()
            await kube.create(PODS, made)
            await asyncio.wait_for(seen.wait(), _LIMIT_S)
            if number >= 0:
                took_ms.append((time.monotonic() - began_s) * 1000)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for name in bound:
            await kube.delete(PODS, name, "default", options=_AT_ONCE_GONE)
    return sorted(took_ms)


async def by_hand(plane: ControlPlane, kube: Kube, nodes: int, pods: int) -> Figure:
    """A bare loop of Bindings: the ceiling for anybody who binds one by one."""
    listed = (await kube.list(PODS)).items
    watch = Watch(kube, pods, plane.pids)
    watch.schedulers.append(os.getpid())
    async with watch.running():
        await each(pods, lambda n: kube.bind(listed[n], f"node-{n // CARDS % nodes}", {}))
        return await watch.figure()


async def until_it_answers(url: str, child: Child) -> None:
    await asyncio.to_thread(wait_until, lambda: answers(url), child, 60.0)
