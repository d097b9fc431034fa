"""A cluster of objects only: GPU nodes with long names, and pods that have cards or wait."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from gpupool.cli.programs import ask_cluster
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import ANNOTATION_INVENTORY, RESOURCE_GPU_MEM
from gpupool.core.gpu import (
    Allocation,
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    Inventory,
    Isolation,
)
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

NODES_OF_WORLD = ("cn-beijing.i-2ze8o1a45qdv5q8a7luz", "cn-shanghai.192.168.7.158")
CARDS = 2
UUID = "GPU-{}{}2bc2e-64b0-55e5-99ca-97058aa7f7fb"
HOLDER = "recommender-training-7d4b9c6f5-x2x9z"
WAITER = "waiter"
UNITS = 15

Answer = TypeVar("Answer")


class World:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    @property
    def where(self) -> tuple[str, str]:
        return "--kubeconfig", str(self.kubeconfig)

    def ask(self, work: Callable[[Kube], Awaitable[Answer]]) -> Answer:
        return ask_cluster(work, kubeconfig=str(self.kubeconfig))

    def start(self) -> None:
        async def make(kube: Kube) -> None:
            for at, name in enumerate(NODES_OF_WORLD):
                made = await kube.create(NODES, _node(name, at))
                await kube.update_status(NODES, {**made, "status": _STATUS})
                # Nobody makes the node ready: its pods would wait for that.
                await kube.patch(NODES.path(name=name), {"spec": {"taints": None}})
            await kube.create(PODS, holding(HOLDER, NODES_OF_WORLD[0], 0))
            await kube.create(PODS, _pod(WAITER, 99))

        self.ask(make)

    def set_health(self, health: CardHealth, reason: str = "") -> None:
        """Of card 1 of the first node."""
        name = NODES_OF_WORLD[0]
        patch = {"metadata": {"annotations": _inventory(0, health, reason)}}

        async def change(kube: Kube) -> Obj:
            return await kube.patch(NODES.path(name=name), patch)

        self.ask(change)

    def add(self, pod: Obj) -> None:
        async def create(kube: Kube) -> Obj:
            return await kube.create(PODS, pod)

        self.ask(create)

    def remove(self, name: str) -> None:
        async def delete(kube: Kube) -> Obj:
            return await kube.delete(PODS, name, "default", options={"gracePeriodSeconds": 0})

        self.ask(delete)


def holding(name: str, node: str, card: int) -> Obj:
    """A pod with a third of a card."""
    at = NODES_OF_WORLD.index(node)
    share = CardShare(UUID.format(at, card), card, UNITS // 3, 5376, UNITS, 20)
    gpus = ContainerGpus("trainer", (share,), Isolation.LIMIT)
    pod = _pod(name, UNITS // 3)
    pod["metadata"]["annotations"] = allocation_annotations(Allocation((gpus,)), now_ns=1)
    pod["spec"]["nodeName"] = node
    return pod


def _pod(name: str, units: int) -> Obj:
    container = {
        "name": "trainer",
        "image": "busybox",
        "resources": {"limits": {RESOURCE_GPU_MEM: str(units)}},
    }
    metadata = {"name": name, "namespace": "default"}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _node(name: str, at: int) -> Obj:
    metadata = {"name": name, "annotations": _inventory(at)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


_STATUS: Obj = {
    amounts: {"cpu": "8", "memory": "64Gi", "pods": "110", RESOURCE_GPU_MEM: str(CARDS * UNITS)}
    for amounts in ("allocatable", "capacity")
}


def _inventory(
    at: int, health: CardHealth = CardHealth.HEALTHY, reason: str = ""
) -> dict[str, str]:
    cards = [
        Card(index, UUID.format(at, index), "Tesla V100-SXM2-16GB", 16130)
        for index in range(CARDS - 1)
    ]
    last = Card(
        CARDS - 1, UUID.format(at, CARDS - 1), "Tesla V100-SXM2-16GB", 16130, health, reason
    )
    return {ANNOTATION_INVENTORY: inventory_text(Inventory((*cards, last)))}
