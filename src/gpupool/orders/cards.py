"""Orders about single cards: cordon, uncordon. They stand in annotations of the card's node, and
its agent carries them out."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from gpupool.contract import names
from gpupool.contract.card_orders import BadOrders, orders_of, orders_text
from gpupool.contract.nodes import node_of
from gpupool.core.gpu import Card, Inventory
from kubeclient.client import Kube
from kubeclient.errors import Conflict
from kubeclient.objects import Obj
from kubeclient.resources import NODES

BY_A_PERSON = "cordoned by a person"  # where nobody gives a reason
Answer = TypeVar("Answer")
_TRIES = 5  # a write conflicts when somebody else writes the node at the same time


class CannotOrder(Exception):
    """The node has no such card, or its orders cannot be read. The text says what to do."""


class CardOrders:
    """The orders about a node's cards in its annotations: which are cordoned, which cleared."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        """Raises CannotOrder."""
        try:
            self.cordoned = orders_of(annotations.get(names.ANNOTATION_CORDONED_CARDS, ""))
            self.cleared = orders_of(annotations.get(names.ANNOTATION_CLEARED_CARDS, ""))
        except BadOrders as error:
            words = f"An annotation of the node is damaged: {error}. Remove it, and try again."
            raise CannotOrder(words) from error

    def annotations(self) -> Obj:
        return {
            names.ANNOTATION_CORDONED_CARDS: orders_text(self.cordoned) if self.cordoned else None,
            names.ANNOTATION_CLEARED_CARDS: orders_text(self.cleared) if self.cleared else None,
        }


Change = Callable[[CardOrders, str], None]


def cordoned(reason: str) -> Change:
    """The card takes no new pods; its pods stay."""

    def change(orders: CardOrders, uuid: str) -> None:
        orders.cordoned[uuid] = reason or BY_A_PERSON
        # An order to clear that was not carried out yet must not follow the cordon.
        orders.cleared.pop(uuid, None)

    return change


def cleared(orders: CardOrders, uuid: str) -> None:
    """The card takes pods again, and its errors so far are forgotten."""
    orders.cordoned.pop(uuid, None)
    orders.cleared[uuid] = ""


async def order_card(kube: Kube, node: str, card: str, change: Change) -> Card:
    """Changes the orders of one card, named by index, uuid or the beginning of one. Raises
    CannotOrder, KubeError."""

    def of_card(orders: CardOrders, found: Obj) -> Card:
        chosen = _card(node, card, node_of(found).inventory or Inventory())
        change(orders, chosen.uuid)
        return chosen

    return await change_orders(kube, node, of_card)


async def change_orders(
    kube: Kube, node: str, change: Callable[[CardOrders, Obj], Answer]
) -> Answer:
    """`change` gets the orders about the node's cards, and the node. Raises CannotOrder,
    KubeError."""
    for tries_left in reversed(range(_TRIES)):
        found = await kube.get(NODES, node)
        orders = CardOrders(found["metadata"].get("annotations") or {})
        answer = change(orders, found)
        metadata = {
            # Each annotation holds the orders for all cards: a blind write would undo what somebody
            # else ordered meanwhile.
            "resourceVersion": found["metadata"]["resourceVersion"],
            "annotations": orders.annotations(),
        }
        try:
            await kube.patch(NODES.path(name=node), {"metadata": metadata})
        except Conflict:
            if not tries_left:
                raise
        else:
            return answer
    raise AssertionError("the last try returns or raises")


def _card(node: str, text: str, inventory: Inventory) -> Card:
    """The card with this index, uuid, or beginning of a uuid."""
    found = list(_named(text, inventory))
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{card.index} ({card.uuid})" for card in inventory.cards) or "none"
    problem = "is ambiguous" if found else "does not exist"
    raise CannotOrder(f'Card "{text}" of node {node} {problem}. Its cards: {known}.')


def _named(text: str, inventory: Inventory) -> Iterator[Card]:
    for card in inventory.cards:
        # Longer than 4: every uuid begins with "GPU-".
        if str(card.index) == text or (len(text) > 4 and card.uuid.startswith(text)):
            yield card
