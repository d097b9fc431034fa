"""The GPU map: every node a row, every card a bar, every pod a segment as wide as its share."""

import re

from gpupool.console.gpus import NodeView, used_of
from gpupool.console.parts.cells import Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, Table, view
from gpupool.console.visit import Visit
from gpupool.console.words import Translate

_NODES_A_PAGE = 50
_AMOUNT = re.compile(r"(\d{1,6})\s*(GiB|Gi|G)?", re.IGNORECASE)


async def _show(visit: Visit) -> Shown:
    t = visit.t
    found = await visit.gpus()
    wanted = free_gib(visit.query.get("free", ""))
    nodes = [node for node in found.nodes if _most_free(node) >= wanted]
    shown = view(_table(t), nodes, visit.query)
    read = await visit.readings(frozenset(node.name for node in shown.rows))
    return Shown(
        title=t("GPU map"),
        sentence=_sentence(t, len(found.nodes), nodes, wanted),
        command="gpupool gpu list; gpupool gpu pods",
        table=shown,
        values={
            "totals": found.totals,
            "readings": read,
            "used": used_of(read),
            "free": visit.query.get("free", ""),
            "any": bool(found.nodes),
        },
    )


def free_gib(text: str) -> int:
    """ "6GiB" or "6"; 0: everything."""
    found = _AMOUNT.fullmatch(text.strip())
    return int(found[1]) if found else 0


def _most_free(node: NodeView) -> int:
    """The most that is free on one card that takes pods."""
    free = (card.free for card in node.cards if card.card.takes_pods and not card.is_closed)
    return max(free, default=0)


def _sentence(t: Translate, all_nodes: int, nodes: list[NodeView], wanted: int) -> str:
    most = max((_most_free(node) for node in nodes), default=0)
    if wanted:
        return t(
            "{found} of {all} nodes have {wanted} GiB free on one card.",
            found=len(nodes),
            all=all_nodes,
            wanted=wanted,
        )
    return t("The most that is free on one card is {most} GiB.", most=most)


def _table(t: Translate) -> Table[NodeView]:
    return Table(
        columns=(Column("name", t("Node"), lambda node: Text(node.name), lambda node: node.name),),
        key=lambda node: node.name,
        words=_words,
        choices=(
            Choice("pool", t("Node pool"), lambda node: node.pool),
            Choice("model", t("Model"), lambda node: node.cards[0].card.model),
            Choice("health", t("State"), _worst, t),
        ),
        order="name",
        empty=t("No node has GPUs. A node has them once its agent has found a driver."),
        page_rows=_NODES_A_PAGE,
    )


def _worst(node: NodeView) -> str:
    """The health of the first card that takes no pods; else "healthy"."""
    sick = (card.card.health for card in node.cards if not card.card.takes_pods)
    return str(next(sick, "healthy"))


def _words(node: NodeView) -> str:
    pods = (f"{part.namespace}/{part.pod}" for card in node.cards for part in card.parts)
    models = {card.card.model for card in node.cards}
    return " ".join((node.name, node.pool, *models, *pods))


PAGE = Page(path="map", menu="map", show=_show, template="map.html")
