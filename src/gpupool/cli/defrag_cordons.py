"""The cordons of a plan of `gpupool defrag`, which end with it.

Two plans must not work on one card: the first one to end would open it to all while the other one
still moves pods. So a card that is cordoned already stops the plan before anything has moved.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NamedTuple

from gpupool.contract.nodes import node_of
from gpupool.core.gpu import Allocation, CardHealth
from gpupool.engine.defrag import Plan
from gpupool.orders.cards import CannotOrder, CardOrders, order_card
from kubeclient.client import Kube
from kubeclient.errors import KubeError, is_certain
from kubeclient.resources import NODES

_REASON = "gpupool defrag makes room here"
_TRIES = 5  # to end a cordon
_PAUSE_S = 1.0

Until = Callable[[Callable[[], Awaitable[bool]], str], Awaitable[None]]


class Left(NamedTuple):
    """A card that may still be cordoned."""

    node: str
    uuid: str


@contextlib.asynccontextmanager
async def cordoned(kube: Kube, plan: Plan, until: Until, left: list[Left]) -> AsyncIterator[None]:
    """The cards for which room is made. `left`: gets those whose cordons could not be ended."""
    ours: list[Left] = []
    reason = f"{_REASON} ({secrets.token_hex(3)})"  # of this plan alone
    try:
        for node, allocation in plan.placements:
            for uuid in sorted(uuids_of(allocation)):
                if Left(node, uuid) not in ours:  # two pods may get shares of one card
                    await _begin(kube, Left(node, uuid), reason, ours)
        for card in ours:
            words = f"card {card.uuid} of node {card.node} was not cordoned"
            await until(partial(_is_cordoned, kube, card), words)
        yield
    finally:
        for card in ours:
            await _end(kube, card, reason, left)


async def _begin(kube: Kube, card: Left, reason: str, ours: list[Left]) -> None:
    ours.append(card)  # before: the answer may be lost
    try:
        await order_card(kube, card.node, card.uuid, partial(_cordon, reason))
    except (CannotOrder, KubeError) as error:
        if isinstance(error, CannotOrder) or is_certain(error):
            ours.remove(card)
        raise


async def _end(kube: Kube, card: Left, reason: str, left: list[Left]) -> None:
    for tries_left in reversed(range(_TRIES)):
        try:
            await order_card(kube, card.node, card.uuid, partial(_uncordon, reason))
        except CannotOrder:
            return  # the card is gone
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


def _uncordon(reason: str, orders: CardOrders, uuid: str) -> None:
    if orders.cordoned.get(uuid) == reason:
        del orders.cordoned[uuid]


async def _is_cordoned(kube: Kube, wanted: Left) -> bool:
    """As the node's agent has published it: the scheduler believes that, and not the order."""
    inventory = node_of(await kube.get(NODES, wanted.node)).inventory
    return any(
        card.uuid == wanted.uuid and card.health is not CardHealth.HEALTHY
        for card in (inventory.cards if inventory else ())
    )


def uuids_of(allocation: Allocation) -> frozenset[str]:
    return frozenset(share.uuid for gpus in allocation.containers for share in gpus.shares)
