"""A scheduler that starts on a large cluster: seconds to its first decision, and its memory.

5,000 nodes of eight cards and 20,000 pods that hold one each, on an API server in a process of its
own. One pod waits. The scheduler is the program `gpupool scheduler`, stopped and started again.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from bench.apiserver import Served, cpu_s, memory_mib, server
from bench.pods import pod as training_pod
from gpupool.contract.allocation import allocation_text
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import ANNOTATION_ALLOCATION, ANNOTATION_INVENTORY, SCHEDULER_NAME
from gpupool.core.gpu import Allocation, Card, CardShare, ContainerGpus, Inventory, Isolation
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.https import connected
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

NODES_OF_CLUSTER, CARDS, PODS_OF_CLUSTER = 5_000, 8, 20_000
CARD_MIB, UNITS = 16_384, 16
AIM_S, AIM_MIB = 5.0, 300
_LABELS = {"aliyun.accelerator/nvidia_name": "Tesla-V100"}
_AT_ONCE = 64
_LIMIT_S = 120.0
_LOOK_S = 0.02
_SETTLES_S = 5.0


def measure_restart(nodes: int = NODES_OF_CLUSTER, pods: int = PODS_OF_CLUSTER) -> dict[str, Any]:
    with server() as served, tempfile.TemporaryDirectory() as scratch:
        kubeconfig = Path(scratch) / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(_kubeconfig(served)))
        return asyncio.run(_measure(kubeconfig, nodes, pods))


async def _measure(kubeconfig: Path, nodes: int, pods: int) -> dict[str, Any]:
    access = await find_access({}, kubeconfig=str(kubeconfig))
    async with connected(access, "bench") as kube:
        await _each(nodes, lambda number: _add_node(kube, number))
        await _each(pods, lambda number: kube.create(PODS, _running(number, nodes)))
        runs = [await _start(kube, kubeconfig, number) for number in range(3)]
    return {
        "nodes": nodes,
        "pods": pods,
        "first_decision_s": sorted(run["seconds"] for run in runs)[1],
        "first_decision_cpu_s": sorted(run["cpu_s"] for run in runs)[1],
        "memory_mib": max(run["memory"]["rss"] for run in runs),
    }


async def _start(kube: Kube, kubeconfig: Path, number: int) -> dict[str, Any]:
    name = f"waiting-{number}"
    waiting = training_pod(name)
    waiting["metadata"]["namespace"] = "default"
    waiting["spec"]["schedulerName"] = SCHEDULER_NAME
    await kube.create(PODS, waiting)
    began_s = time.monotonic()
    with _scheduler(kubeconfig) as pid:
        async with asyncio.timeout(_LIMIT_S):
            await _until_bound(kube, name)
        run = {"seconds": time.monotonic() - began_s, "cpu_s": cpu_s([pid])}
        await asyncio.sleep(_SETTLES_S)
        return {**run, "memory": memory_mib(pid)}


async def _until_bound(kube: Kube, name: str) -> None:
    while True:
        found = await kube.get(PODS, name, "default")
        if found["spec"].get("nodeName"):
            return
        await asyncio.sleep(_LOOK_S)


@contextlib.contextmanager
def _scheduler(kubeconfig: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "gpupool", "scheduler", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen([*command, "--health-address", ""], stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()  # it gives up its Lease, so that the next one need not wait
        process.wait()


async def _each(count: int, act: Callable[[int], Awaitable[object]]) -> None:
    for first in range(0, count, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, count))
        await asyncio.gather(*(act(number) for number in numbers))


async def _add_node(kube: Kube, number: int) -> None:
    name = f"node-{number}"
    cards = tuple(Card(at, _uuid(number, at), "Tesla V100", CARD_MIB) for at in range(CARDS))
    metadata = {
        "name": name,
        "labels": {**_LABELS, "kubernetes.io/hostname": name},
        "annotations": {ANNOTATION_INVENTORY: inventory_text(Inventory(cards))},
    }
    made = await kube.create(NODES, {"metadata": metadata})
    offered = {"cpu": "96", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(CARDS)}
    await kube.update_status(NODES, {**made, "status": {"allocatable": offered}})
    await kube.patch(NODES.path(name=name), {"spec": {"taints": None}})


def _running(number: int, nodes: int) -> Obj:
    node, at = number % nodes, number // nodes
    share = CardShare(_uuid(node, at), at, UNITS, CARD_MIB, UNITS)
    gpus = ContainerGpus("main", (share,), Isolation.NONE)
    made = training_pod(f"pod-{number}")
    made["metadata"] |= {
        "namespace": "default",
        "annotations": {ANNOTATION_ALLOCATION: allocation_text(Allocation((gpus,)))},
    }
    made["spec"] |= {"nodeName": f"node-{node}", "schedulerName": SCHEDULER_NAME}
    return made


def _uuid(node: int, card: int) -> str:
    return f"GPU-{node:08x}-0000-4000-8000-{card:012x}"


def _kubeconfig(served: Served) -> Obj:
    address = served.address
    cluster = {
        "server": f"https://127.0.0.1:{address['port']}",
        "certificate-authority": address["ca"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": address["token"]}}],
    }


def restart_rows(figures: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    title = f"scheduler: {figures['nodes']:,} nodes, {figures['pods']:,} pods"
    took = f"{figures['first_decision_s']:.1f} s ({figures['first_decision_cpu_s']:.1f} s of CPU)"
    took += f", {figures['memory_mib']:.0f} MiB"
    return [(f"{title}, start to first decision", took, f"< {AIM_S:.0f} s, < {AIM_MIB} MiB", "")]


if __name__ == "__main__":
    print(measure_restart())
