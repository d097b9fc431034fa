"""Resizing shares of running pods, with a scheduler on a real API server."""

from pathlib import Path

import pytest

from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import (
    ANNOTATION_MEM_ASSUME_TIME,
    ANNOTATION_MEM_POD,
    ANNOTATION_RESIZE,
    ANNOTATION_SHRINKING,
    ANNOTATION_SHRINKS,
    GROUP_LIMITS,
)
from gpupool.contract.resize import ShrinkReport, reports_text
from gpupool.orders.shares import resize
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS, NODES, PODS
from tests.scheduler.world import CARD_UNITS, add_node, add_pods, bound, gpu_pod, scheduling, world

ROOM = CARD_UNITS - 3
POD = ("default", "a")
WAIT_S = 20.0


async def annotations(kube: Kube) -> dict[str, str]:
    found: dict[str, str] = (await kube.get(PODS, "a", "default"))["metadata"]["annotations"]
    return found


async def pods(kube: Kube, *added: Obj) -> None:
    await add_pods(kube, *added)
    await bound(kube, len(added))


async def confirm(kube: Kube, used_mib: int) -> None:
    """Report as the agent of the node does."""
    pod = await kube.get(PODS, "a", "default")
    uuid = pod_allocation(pod).containers[0].shares[0].uuid
    token = pod["metadata"]["annotations"][ANNOTATION_SHRINKING]
    reports = {pod["metadata"]["uid"]: ShrinkReport(token, {"c": {uuid: used_mib}})}
    patch = {"metadata": {"annotations": {ANNOTATION_SHRINKS: reports_text(reports)}}}
    await kube.patch(NODES.path(name=pod["spec"]["nodeName"]), patch)


async def test_a_share_grows_in_one_step(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await add_node(kube, "n", 1)
        await pods(kube, gpu_pod("a", units=3))
        before = await annotations(kube)
        assert (await resize(kube, POD, "", 6, WAIT_S)).startswith("done: ")
        after = await annotations(kube)
        assert after[f"{GROUP_LIMITS}/c"] == f"GPU-n-0 {6 * 1024} 0\n"
        assert after[ANNOTATION_MEM_POD] == "6"
        assert after[ANNOTATION_MEM_ASSUME_TIME] == before[ANNOTATION_MEM_ASSUME_TIME]
        card = scheduler.state.cluster.at(0).cards[0]
        assert card.free == CARD_UNITS - 6


async def test_a_share_grows_only_into_free_memory_and_the_refusal_says_how_much(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        await pods(kube, gpu_pod("a", units=3), gpu_pod("b", units=ROOM - 2))
        answer = await resize(kube, POD, "c", 6, WAIT_S)
        assert answer == (
            f"refused: card 0 of node n has {CARD_UNITS} units; others hold {ROOM - 2}, so this "
            "pod can have 5 of it, not 6"
        )
        assert ANNOTATION_RESIZE not in await annotations(kube)
        events = [e["reason"] for e in (await kube.list(EVENTS)).items]
        assert "Overcommitted" not in events
        assert (await resize(kube, POD, "c", 5, WAIT_S)).startswith("done: ")


@pytest.mark.parametrize(
    ("container", "units", "words"),
    [
        ("d", 2, "it has no container d with GPUs"),
        ("c", CARD_UNITS + 1, "card 0 has 16 units in all, 17 are asked for"),
        ("c", 0, "container c: wanted at least 1 unit, found 0"),
        ("no name", 1, "gpupool.io/resize: wanted UNITS, or CONTAINER=UNITS[,...]"),
    ],
)
async def test_bad_resize_requests_are_refused_with_a_reason(
    tmp_path: Path, container: str, units: int, words: str
) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        await pods(kube, gpu_pod("a", units=3))
        assert (await resize(kube, POD, container, units, WAIT_S)).startswith(f"refused: {words}")


async def test_shares_without_isolation_and_whole_cards_cannot_be_resized(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        labels = {"metadata": {"labels": {"cgpu.disable.isolation": "true"}}}
        await kube.patch(NODES.path(name="n"), labels)
        await pods(kube, gpu_pod("a", units=3))
        assert "runs without the limiter" in await resize(kube, POD, "c", 4, WAIT_S)
        await kube.delete(PODS, "a", "default", options={"gracePeriodSeconds": 0})
        await add_node(kube, "w", 1, shared=False)
        await pods(kube, gpu_pod("a", whole=1))
        assert "container c has whole cards" in await resize(kube, POD, "c", 4, WAIT_S)


async def test_a_share_shrinks_when_the_agent_says_that_its_limit_is_in_force(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await add_node(kube, "n", 1)
        await pods(kube, gpu_pod("a", units=6))
        card = scheduler.state.cluster.at(0).cards[0]
        assert "the agent of node n has not confirmed" in await resize(kube, POD, "", 2, 0.5)
        assert (await annotations(kube))[f"{GROUP_LIMITS}/c"] == f"GPU-n-0 {2 * 1024} 0\n"
        assert card.free == CARD_UNITS - 6
        await confirm(kube, 2 * 1024)
        assert (await resize(kube, POD, "", 2, WAIT_S)).startswith("done: ")
        assert scheduler.state.cluster.at(0).cards[0].free == CARD_UNITS - 2
        assert ANNOTATION_SHRINKING not in await annotations(kube)


async def test_a_share_does_not_shrink_below_what_is_in_use(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        await pods(kube, gpu_pod("a", units=6))
        await resize(kube, POD, "", 2, 0.5)
        await confirm(kube, 2 * 1024 + 1)
        answer = await resize(kube, POD, "", 2, WAIT_S)
        words = "container c uses 2049 MiB of card 0, more than the 2048 MiB of its new share"
        assert answer.startswith(f"refused: {words}")
        assert (await annotations(kube))[f"{GROUP_LIMITS}/c"] == f"GPU-n-0 {6 * 1024} 0\n"
        assert ANNOTATION_SHRINKING not in await annotations(kube)


async def test_a_withdrawn_resize_request_restores_the_limit(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        await pods(kube, gpu_pod("a", units=6))
        await resize(kube, POD, "", 2, 0.5)
        path = PODS.path("default", "a")
        await kube.patch(path, {"metadata": {"annotations": {ANNOTATION_RESIZE: None}}})
        assert (await resize(kube, POD, "", 6, WAIT_S)).startswith("done: ")
        assert (await annotations(kube))[f"{GROUP_LIMITS}/c"] == f"GPU-n-0 {6 * 1024} 0\n"
        assert ANNOTATION_SHRINKING not in await annotations(kube)
