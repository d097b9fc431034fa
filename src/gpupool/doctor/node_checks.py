"""Judges the nodes: what their agents reported, and what their kubelets offer. Pure.

Every check says the same of like nodes, so that `grouped` can say it once.
"""

import datetime
from collections.abc import Iterator

from gpupool.contract.inventory import BadInventory, inventory_of
from gpupool.contract.names import (
    AGENT_DAEMON_SET,
    ANNOTATION_INVENTORY,
    LABEL_NVIDIA_NAME,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
)
from gpupool.core.gpu import Card, CardHealth, Inventory
from gpupool.doctor.alike import Saying, grouped
from gpupool.doctor.evidence import Evidence, Finding, Level
from gpupool.doctor.way_checks import way_of_node
from kubeclient.objects import Obj
from kubeclient.quantity import ParseError, parse, value
from kubeclient.times import moment_of

# How a card of this health comes back into use (docs/agent.md). A person who cordoned a card meant
# it, and a suspect card comes back by itself: both are no fault of the installation.
_MENDS = {
    CardHealth.SUSPECT: (Level.NOTE, "It takes pods again when it has been quiet for a while."),
    CardHealth.CORDONED: (Level.NOTE, "Take it back into use: gpupool gpu uncordon {} CARD."),
    CardHealth.UNHEALTHY: (
        Level.WRONG,
        "Reset the card or restart the machine; after a reset: gpupool gpu uncordon {} CARD.",
    ),
    CardHealth.LOST: (
        Level.WRONG,
        "Restart the machine. The card takes pods again as soon as it answers.",
    ),
}

_STARTS_WITHIN = datetime.timedelta(minutes=1)
_STARTING = Saying(
    Level.NOTE,
    "nodes",
    one="The agent of node {} has just started, and the kubelet does not offer its cards yet.",
    many="The agents of {} nodes have just started, and the kubelets do not offer their cards yet",
    mend="Look again in a minute.",
)


def cards(evidence: Evidence) -> Iterator[Finding]:
    found = [node for node in evidence.nodes if inventory_text(node)]
    if not found:
        mend = f"See that the pods of {AGENT_DAEMON_SET} run on the nodes with cards."
        yield Finding(Level.NOTE, "nodes", "No agent has reported any card.", mend)
    starting = _starting(evidence)
    yield from grouped(
        (said, _name(node)) for node in found for said in _sayings(node, _name(node) in starting)
    )
    unlisted = Saying(
        Level.WRONG,
        "nodes",
        one="Node {} has the labels of cards, and no inventory.",
        many="{} nodes have the labels of cards, and no inventory",
        mend="See that the agent's pod runs there.",
    )
    yield from grouped(
        (_STARTING if _name(node) in starting else unlisted, _name(node))
        for node in evidence.nodes
        if LABEL_NVIDIA_NAME in (node["metadata"].get("labels") or {}) and not inventory_text(node)
    )


def _starting(evidence: Evidence) -> set[str]:
    """The nodes whose agent is so young that it may not have registered."""
    return {
        str(pod["spec"].get("nodeName", ""))
        for pod in evidence.pods
        if (pod["metadata"].get("labels") or {}).get("name") == AGENT_DAEMON_SET
        and evidence.now - moment_of(pod["metadata"].get("creationTimestamp")) < _STARTS_WITHIN
    }


def _sayings(node: Obj, is_starting: bool) -> Iterator[Saying]:
    try:
        inventory = inventory_of(inventory_text(node))
    except BadInventory as error:
        yield Saying(
            Level.WRONG,
            "nodes",
            one=f"The inventory of node {{}} cannot be read: {error}.",
            many=f"The inventories of {{}} nodes cannot be read ({error})",
            mend="Run agents and schedulers of one version.",
        )
        return
    # Cards that only the missing way closes are told with it.
    closing = inventory.ways.problem if inventory.ways is not None else ""
    for card in inventory.cards:
        if not card.takes_pods and not (closing and closing in card.reason):
            yield _unfit(card)
    if inventory.ways is not None:
        yield way_of_node(inventory.ways)
    # Where no card takes pods, that is the reason why the kubelet offers none.
    if not inventory.cards or any(card.takes_pods for card in inventory.cards):
        yield _offer(node, inventory, is_starting)


def _unfit(card: Card) -> Saying:
    level, mend = _MENDS[card.health]
    state = f"{card.health} ({card.reason})" if card.reason else str(card.health)
    return Saying(
        level,
        "nodes",
        one=f"Card {card.index} of node {{}} takes no pods: it is {state}.",
        many=f"Card {card.index} of {{}} nodes takes no pods, because it is {state}",
        mend=mend.replace("CARD", str(card.index)),
    )


def _offer(node: Obj, inventory: Inventory, is_starting: bool) -> Saying:
    there = len(inventory.cards)
    counted = "1 card" if there == 1 else f"{there} cards"
    whole, shared = (_allocatable(node, each) for each in (RESOURCE_GPU, RESOURCE_GPU_MEM))
    if inventory.cards and not whole and not shared:
        if is_starting:
            return _STARTING
        return Saying(
            Level.WRONG,
            "nodes",
            one=f"Node {{}} has {counted}, and its kubelet offers none.",
            many=f"{{}} nodes have {counted} each, and their kubelets offer none",
            mend="See whether the agent runs there and has registered: kubectl logs.",
        )
    # Our agent offers a node's cards either whole or as shares, never more than there are.
    if whole > there or (whole and shared):
        return Saying(
            Level.WRONG,
            "nodes",
            one=f"Node {{}} offers {RESOURCE_GPU} twice: another device plugin runs there, too.",
            many=f"{{}} nodes offer {RESOURCE_GPU} twice, as another device plugin runs there, too",
            mend="Keep NVIDIA's plugin off these nodes, or set agent.wholeCards=false.",
        )
    offer = f"{whole} of {counted} whole" if whole else f"{shared} units on {counted}"
    return Saying(
        Level.OK,
        "nodes",
        one=f"Node {{}} offers {offer}.",
        many=f"{{}} nodes offer {offer} each",
    )


def inventory_text(node: Obj) -> str:
    return str((node["metadata"].get("annotations") or {}).get(ANNOTATION_INVENTORY, ""))


def _allocatable(node: Obj, resource: str) -> int:
    """Of a thousand, the API server has made 1k."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    try:
        return value(parse(str(offered.get(resource, "0"))))
    except ParseError:
        return 0


def _name(node: Obj) -> str:
    return str(node["metadata"]["name"])
