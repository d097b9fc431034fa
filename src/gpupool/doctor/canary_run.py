"""Starts canaries, waits for what they say, and deletes them, whatever happens."""

import asyncio
import contextlib
import secrets
from collections.abc import Sequence

from gpupool.contract.nodes import node_of
from gpupool.doctor.canary import Canary, canaries, canary_pod, judged
from gpupool.doctor.evidence import Finding, Level
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound, Refused
from kubeclient.objects import Obj
from kubeclient.resources import PODS

LOCAL_IMAGE = "nvidia/cuda"  # a shell in local clusters
_LOOK_S = 0.5
_PLACED_S = 20.0  # a pod that no scheduler has placed by then finds no room
_TOGETHER = 4


def agents_image(agents: Obj) -> str:
    """The image that GPU nodes have already; in a local cluster, the agents have none."""
    template = ((agents.get("spec") or {}).get("template") or {}).get("spec") or {}
    images = [str(each.get("image", "")) for each in template.get("containers") or ()]
    return images[0] if images and "/agent:" not in images[0] else LOCAL_IMAGE


async def fly(
    kube: Kube, nodes: Sequence[Obj], *, namespace: str, image: str, within_s: float
) -> list[Finding]:
    """One finding for each canary. Raises KubeError if there is no answer."""
    planned = canaries(nodes)
    if not planned:
        return [Finding(Level.NOTE, "canary", "No node has a card that takes pods.")]
    memory = {
        card.uuid: card.memory_mib
        for node in map(node_of, nodes)
        if node.inventory is not None
        for card in node.inventory.cards
    }
    # A few at a time: they must not fill a small cluster.
    turns = asyncio.Semaphore(_TOGETHER)

    async def one(canary: Canary) -> Finding:
        name = f"gpupool-canary-{secrets.token_hex(4)}"
        async with turns:
            try:
                pod = await _flown(kube, canary_pod(canary, name, namespace, image), within_s)
            except Refused as refused:
                words = (
                    f"A pod with {canary.kind} for node {canary.nodes[0]} was refused: {refused}"
                )
                return Finding(Level.WRONG, "canary", words, "See what refuses it, and try again.")
        return judged(canary, pod, memory)

    return list(await asyncio.gather(*map(one, planned)))


async def _flown(kube: Kube, pod: Obj, within_s: float) -> Obj:
    """The pod as it was last seen. It is gone when this returns, also after Ctrl-C."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    creating = asyncio.ensure_future(kube.create(PODS, pod))
    try:
        seen = await asyncio.shield(creating)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                began_s = asyncio.get_running_loop().time()
                while not _is_over(seen):
                    waited_s = asyncio.get_running_loop().time() - began_s
                    if waited_s > _PLACED_S and not seen["spec"].get("nodeName"):
                        break
                    await asyncio.sleep(_LOOK_S)
                    seen = await kube.get(PODS, name, namespace)
        return seen
    finally:
        # Not cancelled with us: a canary that stays holds a card.
        await asyncio.shield(_delete(kube, creating, name, namespace))


async def _delete(kube: Kube, creating: asyncio.Future[Obj], name: str, namespace: str) -> None:
    """Its deadline ends a canary that cannot be deleted."""
    # A request that is on its way may be carried out after one that is sent later.
    with contextlib.suppress(KubeError, asyncio.CancelledError):
        await creating
    for _ in range(5):
        try:
            await kube.delete(PODS, name, namespace, options={"gracePeriodSeconds": 0})
        except NotFound:
            return
        except KubeError:
            await asyncio.sleep(_LOOK_S)
        else:
            return


def _is_over(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
