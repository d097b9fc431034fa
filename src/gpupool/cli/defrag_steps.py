"""Carries a plan of `gpupool defrag` out, pod by pod.

The cards that are being freed are cordoned first, so that neither the pods that leave nor others
come to them. Each pod is evicted through the eviction API, which respects disruption budgets. The
pod that its controller makes instead must go where the plan says: the engine that made the plan
places it. If it goes elsewhere, the cluster is not the one of the plan, and nothing more moves.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NamedTuple

from gpupool.cli.programs import ask_cluster
from gpupool.cli.progress import Progress, progress
from gpupool.contract.allocation import BadAllocation, allocation_of
from gpupool.contract.names import ANNOTATION_ALLOCATION
from gpupool.contract.nodes import node_of
from gpupool.core.gpu import Allocation, CardHealth
from gpupool.engine.defrag import Move, Plan
from gpupool.orders.cards import CannotOrder, CardOrders, order_card
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

_REASON = "gpupool defrag makes room here"
_LONGEST_S = 600.0  # for one pod to leave, and for the next one to get a node
_PAUSE_S = 0.5


class Done(NamedTuple):
    moved: int
    total: int
    why: str = ""  # it stopped

    @property
    def is_complete(self) -> bool:
        return self.moved == self.total

    @property
    def words(self) -> str:
        said = f"{self.moved} of {self.total} pods moved."
        return said if self.is_complete else f"{said} Stopped: {self.why}"


class _Stopped(Exception):
    """Reality has left the plan."""


def carry_out(plan: Plan, where: dict[str, str]) -> Done:
    with progress("Moving pods", total=len(plan.moves), at_once=True) as shown:
        return ask_cluster(lambda kube: _carry_out(kube, plan, shown), doing="", **where)


async def _carry_out(kube: Kube, plan: Plan, shown: Progress) -> Done:
    moved = 0
    try:
        async with _cordoned(kube, plan):
            for move in plan.moves:
                shown.say(f"{move.pod.namespace}/{move.pod.name}")
                await _move(kube, move)
                moved += 1
                shown.advance()
    except (_Stopped, CannotOrder, KubeError) as error:
        return Done(moved, len(plan.moves), str(error))
    return Done(moved, len(plan.moves))


@contextlib.asynccontextmanager
async def _cordoned(kube: Kube, plan: Plan) -> AsyncIterator[None]:
    """The cards for which room is made; those that were cordoned before stay so."""
    ours: list[tuple[str, str]] = []
    try:
        for node, allocation in plan.placements:
            for uuid in sorted(_uuids(allocation)):
                await order_card(kube, node, uuid, _cordon)
                ours.append((node, uuid))
        for node, uuid in ours:
            cordoned = partial(_is_cordoned, kube, node, uuid)
            await _until(cordoned, f"card {uuid} of node {node} was not cordoned")
        yield
    finally:
        for node, uuid in ours:
            with contextlib.suppress(CannotOrder, KubeError):
                await order_card(kube, node, uuid, _uncordon)


def _cordon(orders: CardOrders, uuid: str) -> None:
    orders.cordoned.setdefault(uuid, _REASON)


def _uncordon(orders: CardOrders, uuid: str) -> None:
    if orders.cordoned.get(uuid) == _REASON:
        del orders.cordoned[uuid]


async def _is_cordoned(kube: Kube, node: str, uuid: str) -> bool:
    """As the node's agent has published it: the scheduler believes that, and not the order."""
    inventory = node_of(await kube.get(NODES, node)).inventory
    return any(
        card.uuid == uuid and card.health is not CardHealth.HEALTHY
        for card in (inventory.cards if inventory else ())
    )


async def _move(kube: Kube, move: Move) -> None:
    pod = move.pod
    shown = f"pod {pod.namespace}/{pod.name}"
    try:
        there = await kube.get(PODS, pod.name, pod.namespace)
    except NotFound as error:
        raise _Stopped(f"{shown} is gone.") from error
    if there["metadata"]["uid"] != pod.uid or there["spec"].get("nodeName") != move.source:
        raise _Stopped(f"{shown} is not on node {move.source} any more.")
    owner = _controller(there)
    before = {each["metadata"]["uid"] for each in await _pods_of(kube, pod.namespace, owner)}
    await kube.evict(there)
    landed = await _next_pod(kube, pod.namespace, owner, before, shown)
    node, cards = landed["spec"]["nodeName"], _cards_of(landed)
    if (node, cards) != (move.target.node, _uuids(move.target.allocation)):
        name = landed["metadata"]["name"]
        raise _Stopped(
            f"{shown} was to go to {_place(move.target.node, _uuids(move.target.allocation))}; "
            f"{name}, which takes its place, went to {_place(node, cards)}."
        )


async def _next_pod(kube: Kube, namespace: str, owner: str, before: set[str], shown: str) -> Obj:
    found: list[Obj] = []

    async def has_node() -> bool:
        pods = await _pods_of(kube, namespace, owner)
        new = [pod for pod in pods if pod["metadata"]["uid"] not in before]
        found[:] = [pod for pod in new if pod["spec"].get("nodeName")]
        return bool(found)

    await _until(has_node, f"no pod that takes the place of {shown} has got a node")
    return found[0]


async def _pods_of(kube: Kube, namespace: str, owner: str) -> list[Obj]:
    return [pod for pod in (await kube.list(PODS, namespace)).items if _controller(pod) == owner]


def _controller(pod: Obj) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(each.get("uid")) for each in owners if each.get("controller")), "")


async def _until(holds: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    """Raises _Stopped."""
    try:
        async with asyncio.timeout(_LONGEST_S):
            while not await holds():  # noqa: ASYNC110  # only the API server knows
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError as error:
        raise _Stopped(f"{otherwise} after {_LONGEST_S:.0f} seconds.") from error


def _uuids(allocation: Allocation) -> frozenset[str]:
    return frozenset(share.uuid for gpus in allocation.containers for share in gpus.shares)


def _cards_of(pod: Obj) -> frozenset[str]:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATION)
    try:
        return _uuids(allocation_of(text)) if text else frozenset()
    except BadAllocation:
        return frozenset()


def _place(node: str, cards: frozenset[str]) -> str:
    return f"node {node}, card {', '.join(sorted(cards))}" if cards else f"node {node}"
