"""The GPU map: every node a row, every card a bar, every pod a segment as wide as its share."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpupool.console.card_cells import CardCell, Drawing, PodKey
from gpupool.console.colours import By, by_of, palette
from gpupool.console.gpus import CardView, NodeView, Totals, all_used_mib, used_of
from gpupool.console.pages.map_panel import panel_of
from gpupool.console.parts.cells import Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, Table, TableView, view
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from gpupool.core.gpu import CardHealth
from kubeclient.resources import PODS

_NODES_A_PAGE = 50
_AMOUNT = re.compile(r"(\d{1,6})\s*(GiB|Gi|G)?", re.IGNORECASE)
SICK = "sick"
_HEALTH_WORDS = {
    CardHealth.HEALTHY: word("all cards take pods"),
    SICK: word("some card is sick"),
    CardHealth.CORDONED: word("some card is cordoned"),
}
COLOURS = {
    By.NAMESPACE: word("colour: namespace"),
    By.POOL: word("colour: node pool"),
    By.USE: word("colour: use"),
}


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node as the map shows it."""

    node: NodeView
    cells: tuple[CardCell, ...]
    begins_pool: bool  # the nodes before it are of another pool


async def _show(visit: Visit) -> Shown:
    t = visit.t
    found = await visit.gpus()
    wanted = free_gib(visit.query.get("free", ""))
    nodes = [node for node in found.nodes if node.most_free >= (wanted or 0)]
    shown = view(_table(t), nodes, visit.query)
    pods = (await visit.watch(PODS, "")).rows(pod_row)
    read = await visit.readings(frozenset(node.name for node in shown.rows))
    colours = palette(by_of(visit.query.get("colour", "")), found.nodes)
    drawn = Drawing(
        t,
        colours,
        read,
        used_of(read),
        pods,
        lambda _, part: _panel_link(visit, pod=f"{part.namespace}/{part.pod}"),
        lambda _, card: _panel_link(visit, card=card.card.uuid),
        _meant(visit.query, wanted),
        visit.query.get("card") or visit.query.get("pod", ""),
    )
    return Shown(
        title=t("GPU map"),
        sentence=_sentence(t, visit.query, len(found.nodes), nodes, wanted),
        command="gpupool gpu list; gpupool gpu pods",
        table=shown,
        values={
            "figures": _figures(t, found.totals, all_used_mib(found, read), pods),
            "lines": _lines(drawn, shown),
            "free": visit.query.get("free", ""),
            "any": bool(found.nodes),
            "colour": colours.by,
            "colours": [(by, t(words)) for by, words in COLOURS.items()],
            "legend": colours.legend(t),
            "panel": await panel_of(visit, found),
        },
    )


def free_gib(text: str) -> int | None:
    """ "6GiB" or "6"; nothing: 0, which all have. None: it is no amount."""
    if not text.strip():
        return 0
    found = _AMOUNT.fullmatch(text.strip())
    return int(found[1]) if found else None


def _panel_link(visit: Visit, *, card: str = "", pod: str = "") -> str:
    """The same map, with the panel of this card or pod."""
    return visit.link("map", **{**visit.query, "card": card, "pod": pod})


def _lines(drawn: Drawing, shown: TableView) -> list[NodeLine]:
    lines, before = [], None
    for node in shown.rows:
        lines.append(NodeLine(node, drawn.cells(node), node.pool != before))
        before = node.pool
    return lines


def _meant(query: Mapping[str, str], wanted: int | None) -> Callable[[CardView], bool]:
    model, health = query.get("model", ""), query.get("health", "")

    def means(view: CardView) -> bool:
        """Whether the filters mean this card; of a node that is shown, others are dim."""
        return (
            (not wanted or view.offers >= wanted)
            and (not model or view.card.model == model)
            and (health not in _HEALTH_WORDS or health == _health(view))
        )

    return means


def _figures(
    t: Translate, totals: Totals, used_mib: int | None, pods: Mapping[PodKey, PodRow]
) -> list[tuple[str, str]]:
    return [
        (t("Cards"), str(totals.cards)),
        (t("Free cards"), str(totals.free)),
        (t("Allocated"), f"{totals.used} / {totals.units} GiB"),
        (t("Used"), "–" if used_mib is None else f"{used_mib / 1024:.1f} GiB"),
        (t("Waiting"), str(sum(pod.waits for pod in pods.values()))),
    ]


def _sentence(
    t: Translate,
    query: Mapping[str, str],
    all_nodes: int,
    nodes: list[NodeView],
    wanted: int | None,
) -> str:
    if wanted is None:
        text = query.get("free", "")[:40]
        return t(
            'Wanted a number of GiB that is free on one card, such as 6, found "{text}".', text=text
        )
    if wanted:
        return t(
            "{found} of {all} nodes have {wanted} GiB free on one card.",
            found=len(nodes),
            all=all_nodes,
            wanted=wanted,
        )
    most = max((node.most_free for node in nodes), default=0)
    return t("The most that is free on one card is {most} GiB.", most=most)


def _table(t: Translate) -> Table[NodeView]:
    return Table(
        columns=(
            Column("name", t("Node"), lambda node: Text(node.name), lambda node: node.name),
            Column(
                "pool",
                t("Node pool"),
                lambda node: Text(node.pool),
                lambda node: (node.pool, node.name),
            ),
        ),
        key=lambda node: node.name,
        words=_words,
        choices=(
            Choice("pool", t("Node pool"), lambda node: node.pool),
            Choice("model", t("Model"), lambda node: node.cards[0].card.model),
            Choice("health", t("State"), _worst, lambda value: t(_HEALTH_WORDS[value])),
        ),
        order="pool",
        empty=t("No node has GPUs. A node has them once its agent has found a driver."),
        page_rows=_NODES_A_PAGE,
    )


def _health(view: CardView) -> str:
    if view.card.health is CardHealth.CORDONED:
        return CardHealth.CORDONED
    return CardHealth.HEALTHY if view.card.takes_pods and not view.is_closed else SICK


def _worst(node: NodeView) -> str:
    found = {_health(card) for card in node.cards}
    return next((each for each in (SICK, CardHealth.CORDONED) if each in found), CardHealth.HEALTHY)


def _words(node: NodeView) -> str:
    pods = (f"{part.namespace}/{part.pod}" for card in node.cards for part in card.parts)
    uuids = (card.card.uuid for card in node.cards)
    return " ".join((node.name, node.pool, *node.models, *uuids, *pods))


PAGE = Page(path="map", menu="map", show=_show, template="map.html")
