"""A real API server in this process with GPU nodes made by hand: no kubelet, no controllers."""

import asyncio
import contextlib
import datetime
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from gpupool.contract.allocation import allocation_of
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_INVENTORY,
    LABEL_CGPU,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
)
from gpupool.core.gpu import Card, CardHealth, Inventory
from gpupool.scheduler.elected import LEASE, Elected
from gpupool.scheduler.run import Scheduler, SchedulerSettings
from kubeclient.client import Kube
from kubeclient.lease import Candidacy
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from tests.kubeclient.api import api

POLICY = "best-fit"  # its decisions are easy to predict
NAMES = frozenset({"default-scheduler", "gpupool-scheduler"})
CARD_UNITS = 16


def cards(node: str, count: int, health: CardHealth = CardHealth.HEALTHY) -> tuple[Card, ...]:
    return tuple(
        Card(index, f"GPU-{node}-{index}", "Test Card", CARD_UNITS * 1024, health)
        for index in range(count)
    )


async def add_node(
    kube: Kube,
    name: str,
    gpus: int,
    *,
    shared: bool = True,
    pods: int = 250,
    health: CardHealth = CardHealth.HEALTHY,
) -> None:
    labels = {"kubernetes.io/hostname": name} | ({LABEL_CGPU: "true"} if shared else {})
    annotations = {ANNOTATION_INVENTORY: inventory_text(Inventory(cards(name, gpus, health)))}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    made = await kube.create(NODES, node)
    amount = {"cpu": "64", "memory": "256Gi", "pods": str(pods)}
    resource = RESOURCE_GPU_MEM if shared else RESOURCE_GPU
    amount[resource] = str(gpus * CARD_UNITS if shared else gpus)
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    ready |= {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    made["status"] = {"capacity": amount, "allocatable": amount, "conditions": [ready]}
    await kube.update_status(NODES, made)
    await kube.patch(NODES.path(name=name), {"spec": {"taints": None}})


def gpu_pod(name: str, *, units: int = 0, whole: int = 0, **spec: object) -> Obj:
    limits = {RESOURCE_GPU_MEM: str(units)} if units else {}
    limits |= {RESOURCE_GPU: str(whole)} if whole else {}
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "gpupool-scheduler", "containers": [container], **spec},
    }


async def add_pods(kube: Kube, *pods: Obj) -> None:
    await asyncio.gather(*(kube.create(PODS, pod) for pod in pods))


@contextlib.asynccontextmanager
async def world(directory: Path) -> AsyncIterator[Kube]:
    async with api(directory) as kube:
        yield kube


@contextlib.asynccontextmanager
async def scheduling(kube: Kube, names: frozenset[str] = NAMES) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(kube, SchedulerSettings(POLICY, names))
    task = asyncio.create_task(scheduler.run())
    try:
        yield scheduler
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def candidacy(
    identity: str,
    names: frozenset[str] = frozenset(),
    valid_s: float = 15.0,
    *,
    goes_first: bool = False,
) -> Candidacy:
    return Candidacy(
        LEASE,
        identity,
        names,
        goes_first,
        valid_s=valid_s,
        sure_s=valid_s * 2 / 3,
        retry_s=0.02,
    )


@contextlib.asynccontextmanager
async def elected(kube: Kube, identity: str, valid_s: float = 15.0) -> AsyncIterator[None]:
    """A scheduler with leader election."""
    task = asyncio.create_task(Elected(kube, POLICY, candidacy(identity, NAMES, valid_s)).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def bound(kube: Kube, count: int, within_s: float = 30.0) -> list[Obj]:
    """The bound pods, once there are `count`."""
    async with asyncio.timeout(within_s):
        while True:
            found = [pod for pod in (await kube.list(PODS)).items if pod["spec"].get("nodeName")]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.01)


def units_by_card(pods: list[Obj]) -> Counter[str]:
    """From the annotations of the pods alone, without our ledger."""
    held: Counter[str] = Counter()
    for pod in pods:
        text = pod["metadata"].get("annotations", {}).get(ANNOTATION_ALLOCATION)
        for container in allocation_of(text).containers if text else ():
            for share in container.shares:
                held[share.uuid] += share.units
    return held


def assert_no_card_over(pods: list[Obj]) -> None:
    over = {uuid: units for uuid, units in units_by_card(pods).items() if units > CARD_UNITS}
    assert not over
