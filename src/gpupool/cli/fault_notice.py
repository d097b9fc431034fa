"""Waits until a node's agent has noticed a fault, so that the next command shows it."""

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpupool.core.gpu import Inventory
    from gpupool.hardware.simdriver_faults import Fault
    from kubeclient.client import Kube

# An agent reads its cards once in a second. What it does not notice by then (the fault was there
# before, or the agent does not run) is not waited for.
_PATIENCE_S = 3.0
_LOOK_EVERY_S = 0.1


def changes_health(fault: "Fault", before: "Inventory") -> bool:
    """Whether the agent will say something else of the cards after this fault."""
    from gpupool.agent.xid_policy import Effect, load_policy
    from gpupool.hardware.simdriver_faults import FaultKind

    if fault.kind is FaultKind.XID:
        return load_policy().rule(fault.value).effect is not Effect.IGNORE
    if fault.kind is FaultKind.RECOVER:
        return not all(card.takes_pods for card in before.cards)
    return fault.kind is FaultKind.LOST


async def until_noticed(
    kube: "Kube", node: str, before: "Inventory", inventory_of: Callable[..., "Inventory"]
) -> None:
    """Until the health of a card is another than before. Raises KubeError."""
    from kubeclient.resources import NODES

    known = {card.uuid: card.health for card in before.cards}
    clock = asyncio.get_running_loop().time
    deadline = clock() + _PATIENCE_S
    while clock() < deadline:
        now = inventory_of(await kube.get(NODES, node))
        if {card.uuid: card.health for card in now.cards} != known:
            return
        await asyncio.sleep(_LOOK_EVERY_S)


async def until_read(kube: "Kube", node: str, uuids: Collection[str]) -> None:
    """Until the agent has read these cards again: one that was lost told nothing of its use."""
    from gpupool.readings import read_nodes

    clock = asyncio.get_running_loop().time
    deadline = clock() + _PATIENCE_S
    while clock() < deadline:
        readings = (await read_nodes(kube, frozenset({node}))).cards()
        read = {uuid for uuid, card in readings.items() if card.memory_used_mib is not None}
        if read.issuperset(uuids):
            return
        await asyncio.sleep(_LOOK_EVERY_S)
