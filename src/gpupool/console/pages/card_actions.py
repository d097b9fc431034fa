"""What can be done to a single card: give it no new pods, and take it back into use."""

from collections.abc import Mapping

from gpupool.console.gpus import CardView
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.form import Field, Invalid
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from gpupool.core.gpu import Card, CardHealth
from gpupool.orders.cards import CannotOrder, Change, cleared, cordoned, order_card
from kubeclient.resources import NODES

_LONGEST_REASON = 200


def card_rights(_: Visit) -> tuple[Right, ...]:
    return (Right("get", NODES), Right("patch", NODES))


def card_actions(visit: Visit, node: str, view: CardView, lacks: str) -> tuple[RowAction, ...]:
    """A card that is sick is taken back by the same order as one that a person has cordoned."""
    t, card = visit.t, view.card
    cordon = RowAction(t("Cordon"), visit.link("nodes", node, "cards", card.uuid, "cordon"), lacks)
    clear = RowAction(
        t("Uncordon"), visit.link("nodes", node, "cards", card.uuid, "uncordon"), lacks
    )
    if card.health is CardHealth.HEALTHY:
        return (cordon,)
    return (clear,) if card.health is CardHealth.CORDONED else (clear, cordon)


async def _ask_cordon(visit: Visit) -> Question:
    t, node, card = visit.t, visit.names["node"], visit.names["card"]
    reason = Field(
        "reason",
        t("Reason"),
        help=t("Shown wherever the card is listed."),
        longest=_LONGEST_REASON,
    )
    return Question(
        title=t("Cordon card {card} of node {node}", card=card, node=node),
        sentence=t("It gets no new pods. Pods that are on it stay."),
        button=t("Cordon card"),
        fields=(reason,),
        command=f"gpupool gpu cordon {node} {card}",
    )


async def _ask_uncordon(visit: Visit) -> Question:
    t, node, card = visit.t, visit.names["node"], visit.names["card"]
    return Question(
        title=t("Uncordon card {card} of node {node}", card=card, node=node),
        sentence=t("It gets new pods again, and its errors so far are forgotten."),
        button=t("Uncordon card"),
        command=f"gpupool gpu uncordon {node} {card}",
    )


async def _cordon(visit: Visit, values: Mapping[str, str]) -> Done:
    t, node = visit.t, visit.names["node"]
    card = await _order(visit, cordoned(values["reason"]))
    words = t("Card {card} of node {node} is being cordoned.", card=card.index, node=node)
    return Done(visit.link("map", node=node, card=card.uuid), words)


async def _uncordon(visit: Visit, _: Mapping[str, str]) -> Done:
    t, node = visit.t, visit.names["node"]
    card = await _order(visit, cleared)
    words = t("Card {card} of node {node} is being uncordoned.", card=card.index, node=node)
    return Done(visit.link("map", node=node, card=card.uuid), words)


async def _order(visit: Visit, change: Change) -> Card:
    try:
        return await order_card(visit.kube, visit.names["node"], visit.names["card"], change)
    except CannotOrder as error:
        raise Invalid({"": str(error)}) from error


_PATH = "nodes/{node}/cards/{card}"
ACTIONS = (
    Action(f"{_PATH}/cordon", "map", card_rights, _ask_cordon, _cordon),
    Action(f"{_PATH}/uncordon", "map", card_rights, _ask_uncordon, _uncordon),
)
