"""Pods bound per second on a real kube-apiserver: kube-scheduler, gpupool, and a bare loop.

    python -m bench.kubernetes_scheduling --nodes 1000 --pods 2000

Nodes are made by API, with eight whole cards each; pods ask for one card, and all exist before a
scheduler starts. The rate is that of the middle 80 %: starting up and the last few are left out.
The bare loop posts Bindings to the same server: the ceiling for anybody who binds one by one.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path

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
from gpupool.scheduler.kube_scheduler_config import kube_scheduler_config
from testbed import build
from testbed.controlplane import ControlPlane
from testbed.processes import Child, free_ports

CARDS = 8
_AT_ONCE = 64
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


async def bound_per_second(kube: Kube, count: int) -> float:
    """By the times at which a watcher saw them bound, from now on."""
    seen: list[float] = []
    done = asyncio.Event()

    def changed(old: Obj | None, new: Obj | None) -> None:
        was = old is not None and bool(old["spec"].get("nodeName"))
        if new is not None and new["spec"].get("nodeName") and not was:
            seen.append(time.monotonic())
            if len(seen) == count:
                done.set()

    mirror = Mirror(kube, PODS)
    mirror.on_change(changed)
    watching = asyncio.create_task(mirror.run())
    try:
        await asyncio.wait_for(done.wait(), _LIMIT_S)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    first, last = count // 10, count - count // 10
    return (last - first) / (seen[last - 1] - seen[first])


@contextlib.asynccontextmanager
async def filled(nodes: int, pods: int, scheduler: str) -> AsyncIterator[tuple[ControlPlane, Kube]]:
    """A control plane of its own for each run, with everything in it that is to be scheduled."""
    flags = {"kube-apiserver": ["--disable-admission-plugins=TaintNodesByCondition"]}
    with ControlPlane(flags=flags) as plane:
        access = await find_access({}, kubeconfig=str(plane.kubeconfig))
        async with connected(access, "bench") as kube:
            account = {"metadata": {"name": "default", "namespace": "default"}}
            with contextlib.suppress(AlreadyExists):
                await kube.create(SERVICE_ACCOUNTS, account)
            await each(nodes, lambda n: kube.create(NODES, node(f"node-{n}")))
            await each(pods, lambda n: kube.create(PODS, pod(f"pod-{n}", scheduler)))
            yield plane, kube


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


async def by_programs(nodes: int, pods: int, scheduler: str, *commands: Command) -> float:
    async with filled(nodes, pods, scheduler) as (plane, kube):
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
            folder = Path(name)
            for number, command in enumerate(commands):
                child = Child(f"{number}", command(plane, folder), folder / f"{number}.log")
                running.callback(child.stop)
            return await bound_per_second(kube, pods)


async def by_hand(nodes: int, pods: int) -> float:
    async with filled(nodes, pods, "nobody") as (_, kube):
        waiting = (await kube.list(PODS)).items
        rate = asyncio.create_task(bound_per_second(kube, pods))
        await asyncio.sleep(1.0)  # until the watcher has read everything
        await each(pods, lambda n: kube.bind(waiting[n], f"node-{n // CARDS % nodes}", {}))
        return await rate


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Pods bound per second on a real kube-apiserver.")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=2000)
    options = parser.parse_args(arguments)
    run = partial(by_programs, options.nodes, options.pods)
    (port,) = free_ports(1)
    alone = partial(kube_scheduler, qps=0)
    raised = partial(kube_scheduler, qps=5000)
    asking = partial(kube_scheduler, qps=5000, extender=port)
    runs: dict[str, Callable[[], Coroutine[None, None, float]]] = {
        "kube-scheduler, as it comes": lambda: run("default-scheduler", alone),
        "kube-scheduler, qps 5000": lambda: run("default-scheduler", raised),
        "gpupool, asked by it": lambda: run(
            "default-scheduler", partial(extender, port=port), asking
        ),
        "gpupool, second scheduler": lambda: run("gpupool-scheduler", gpupool),
        "bare loop of Bindings": lambda: by_hand(options.nodes, options.pods),
    }
    print(f"{options.pods} pods on {options.nodes} nodes with {CARDS} cards each")
    for name, measure in runs.items():
        print(f"  {name:<28} {asyncio.run(measure()):6.0f} pods/s", flush=True)


if __name__ == "__main__":
    main()
