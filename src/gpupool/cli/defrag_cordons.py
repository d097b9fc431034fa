"""The cordons of a plan of `gpupool defrag`, which end with it.

Two plans must not work on one card: the first one to end would open it to all while the other one
still moves pods. So a card that is cordoned already stops the plan before anything has moved.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from gpupool.contract.nodes import node_of
from gpupool.core.gpu import Allocation, CardHealth
from gpupool.engine.defrag import Plan
from gpupool.orders.cards import CannotOrder, CardOrders, change_orders, order_card
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound, is_certain
from kubeclient.objects import Obj
from kubeclient.resources import NODES

_REASON = "gpupool defrag makes room here"
_TRIES = 5  # to end a cordon
_LONGEST_S = 60.0  # to end all of them
_PAUSE_S = 1.0

Until = Callable[[Callable[[], Awaitable[bool]], str], Awaitable[None]]


class Left(NamedTuple):
    """A card that may still be cordoned."""

    node: str
    uuid: str


@contextlib.asynccontextmanager
async def cordoned(
    kube: Kube, plan: Plan, until: Until, say: Callable[[str], None], left: list[Left]
) -> AsyncIterator[None]:
    """The cards for which room is made. `say`: what is waited for. `left`: gets those whose cordons
    could not be ended.
    """
    ours: list[Left] = []
    reason = f"{_REASON} ({secrets.token_hex(3)})"  # of this plan alone
    try:
        for node, allocation in plan.placements:
            for uuid in sorted(uuids_of(allocation)):
                if Left(node, uuid) not in ours:  # two pods may get shares of one card
                    await _begin(kube, Left(node, uuid), reason, ours)
        for card in ours:
            say(f"waiting until the agent of node {card.node} has cordoned card {card.uuid}")
            words = f"card {card.uuid} of node {card.node} was not cordoned"
            await until(partial(_is_cordoned, kube, card), words)
        yield
    finally:
        await uninterrupted(_end_all(kube, ours, reason, left))


async def _begin(kube: Kube, card: Left, reason: str, ours: list[Left]) -> None:
    ours.append(card)  # before: the answer may be lost
    try:
        await order_card(kube, card.node, card.uuid, partial(_cordon, reason))
    except (CannotOrder, KubeError) as error:
        if isinstance(error, CannotOrder) or is_certain(error):
            ours.remove(card)
        raise


async def uninterrupted(work: Coroutine[Any, Any, None]) -> bool:
    """Whether somebody tried to interrupt it. A terminal that is closed sends several signals, and
    people press Ctrl-C again."""
    task, was_tried = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            was_tried = True
    task.result()
    return was_tried


async def _end_all(kube: Kube, ours: list[Left], reason: str, left: list[Left]) -> None:
    try:
        async with asyncio.timeout(_LONGEST_S):
            while ours:
                await _end(kube, ours[0], reason, left)
                ours.pop(0)
    except TimeoutError:
        left += ours


async def _end(kube: Kube, card: Left, reason: str, left: list[Left]) -> None:
    def uncordon(orders: CardOrders, _node: Obj) -> None:
        # Also of a card that is not in the inventory: the order would meet it when it is back.
        if orders.cordoned.get(card.uuid) == reason:
            del orders.cordoned[card.uuid]

    for tries_left in reversed(range(_TRIES)):
        try:
            await change_orders(kube, card.node, uncordon)
        except NotFound:
            return  # the node is gone, and its orders with it
        except CannotOrder:
            break
        except KubeError:
            if tries_left:
                await asyncio.sleep(_PAUSE_S)
        else:
            return
    left.append(card)


def _cordon(reason: str, orders: CardOrders, uuid: str) -> None:
    if orders.cordoned.get(uuid, reason) != reason:
        raise CannotOrder(f"Card {uuid} is cordoned meanwhile: {orders.cordoned[uuid]}.")
    orders.cordoned[uuid] = reason


async def _is_cordoned(kube: Kube, wanted: Left) -> bool:
    """As the node's agent has published it: the scheduler believes that, and not the order."""
    inventory = node_of(await kube.get(NODES, wanted.node)).inventory
    return any(
        card.uuid == wanted.uuid and card.health is not CardHealth.HEALTHY
        for card in (inventory.cards if inventory else ())
    )


def ordered_shut(node: Obj) -> frozenset[str]:
    """Cards that are to take no new pods, as far as the orders can be read."""
    try:
        orders = CardOrders(node["metadata"].get("annotations") or {})
    except CannotOrder:
        return frozenset()
    return frozenset(orders.cordoned)


def uuids_of(allocation: Allocation) -> frozenset[str]:
    return frozenset(share.uuid for gpus in allocation.containers for share in gpus.shares)
