"""`gpupool defrag --apply` beside a scheduler that knows equal nodes in another order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpupool.cli import defrag_cordons, defrag_steps
from gpupool.cli.defrag import _Asked, _proposal
from gpupool.cli.defrag_steps import Done, carried_out
from gpupool.cli.defrag_view import Proposal
from gpupool.cli.manifests import all_completed
from gpupool.cli.progress import Progress
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.card_orders import orders_of
from gpupool.contract.inventory import inventory_text
from gpupool.contract.manifests import pod_templates
from gpupool.contract.names import (
    ANNOTATION_CORDONED_CARDS,
    ANNOTATION_INVENTORY,
    ANNOTATION_PLANNED_MOVES,
)
from gpupool.core.gpu import (
    Allocation,
    CardHealth,
    CardShare,
    ContainerGpus,
    Inventory,
    Isolation,
)
from gpupool.scheduler.follow import read_objects
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from tests.scheduler.test_scheduler import eventually
from tests.scheduler.world import (
    CARD_UNITS,
    add_node,
    cards,
    gpu_pod,
    scheduling,
    world,
)

CARDS = 4
NAMES = ("n4", "n2", "n3", "n1")  # as they appear
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}


def small(name: str) -> Obj:
    pod = gpu_pod(name, whole=1, terminationGracePeriodSeconds=0)
    pod["metadata"]["ownerReferences"] = [OWNER]
    return pod


async def add_running(kube: Kube, name: str, node: str) -> None:
    pod = small(name)
    pod["spec"]["schedulerName"] = "somebody"
    made = await kube.create(PODS, pod)
    card = CardShare(f"GPU-{node}-0", 0, CARD_UNITS, CARD_UNITS * 1024, CARD_UNITS)
    given = Allocation((ContainerGpus("c", (card,), Isolation.WHOLE),))
    await kube.bind(made, node, allocation_annotations(given, now_ns=0))


async def agents(kube: Kube) -> None:
    """They publish which cards are cordoned."""
    for node in (await kube.list(NODES)).items:
        name, notes = node["metadata"]["name"], node["metadata"]["annotations"]
        ordered = orders_of(notes.get(ANNOTATION_CORDONED_CARDS, ""))
        listed = tuple(
            replace(card, health=CardHealth.CORDONED) if card.uuid in ordered else card
            for card in cards(name, CARDS)
        )
        text = inventory_text(Inventory(listed))
        if text != notes[ANNOTATION_INVENTORY]:
            changed = {"metadata": {"annotations": {ANNOTATION_INVENTORY: text}}}
            await kube.patch(NODES.path(name=name), changed)


async def controller(kube: Kube) -> None:
    """There are always so many pods."""
    there = {pod["metadata"]["name"] for pod in (await kube.list(PODS)).items}
    for at in range(len(NAMES) - len(there)):
        name = next(f"next-{n}" for n in range(at, 100) if f"next-{n}" not in there)
        there.add(name)
        await kube.create(PODS, small(name))


@contextlib.asynccontextmanager
async def going_on(*works: Callable[[Kube], Awaitable[None]], kube: Kube) -> AsyncIterator[None]:
    async def again_and_again(work: Callable[[Kube], Awaitable[None]]) -> None:
        while True:
            await work(kube)
            await asyncio.sleep(0.01)

    tasks = [asyncio.ensure_future(again_and_again(work)) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def planned(kube: Kube, wanted: int) -> Proposal:
    """Room for a pod with all cards of a node, `wanted` times."""
    template = {"spec": gpu_pod("large", whole=CARDS)["spec"]}
    spec = {"replicas": wanted, "template": template}
    deployment = {"kind": "Deployment", "metadata": {"name": "large"}, "spec": spec}
    templates = pod_templates([deployment], "default")
    pods = await all_completed(kube, templates)
    asked = _Asked(Path("large.yaml"), "default", 10, True, "best-fit")
    return _proposal(await read_objects(kube), templates, pods, asked)


@pytest.mark.parametrize("wanted", [1, 2])
async def test_pods_go_where_the_plan_says_although_all_nodes_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    monkeypatch.setattr(defrag_steps, "_PAUSE_S", 0.02)
    monkeypatch.setattr(defrag_cordons, "_PAUSE_S", 0.02)
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await eventually(lambda: scheduler.is_synced)
        for name in NAMES:
            await add_node(kube, name, CARDS, shared=False)
            await add_running(kube, f"on-{name}", name)
        await eventually(lambda: len(scheduler.state.ledger) == len(NAMES))
        known = [scheduler.state.cluster.at(at).node.name for at in range(len(NAMES))]
        assert known == list(NAMES)
        proposal = await planned(kube, wanted)
        assert proposal.plan is not None
        assert len(proposal.plan.moves) == wanted
        async with going_on(agents, controller, kube=kube):
            done: Done = await carried_out(
                kube, proposal.plan, proposal.running, Progress("Moving pods", wanted)
            )
        assert done.words == f"{wanted} of {wanted} pods moved."
        for node in (await kube.list(NODES)).items:
            assert ANNOTATION_PLANNED_MOVES not in node["metadata"]["annotations"]
            assert ANNOTATION_CORDONED_CARDS not in node["metadata"]["annotations"]
