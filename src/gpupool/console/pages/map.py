"""The GPU map: every node a row, every card a bar, every pod a segment as wide as its share.

Of many nodes, every card is a small square (`map_heat.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpupool.console.card_cells import CardCell, Drawing, PodKey
from gpupool.console.colours import By, Palette, by_of, palette
from gpupool.console.gpus import NodeView, Overview, Totals, all_used_mib, used_of
from gpupool.console.pages.map_filters import (
    HEALTH_WORDS,
    Filters,
    filters_of,
    node_words,
    worst_health,
)
from gpupool.console.pages.map_heat import heat_version
from gpupool.console.pages.map_panel import panel_of
from gpupool.console.parts.cells import Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, Table, TableView, view
from gpupool.console.read_cards import MOST_NODES_READ
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from gpupool.core.readings import CardReading
from kubeclient.resources import PODS

_NODES_A_PAGE = 50
_MOST_IN_DETAIL = 64  # nodes; more are shown as squares, until the visitor chooses
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
    t, filters = visit.t, filters_of(visit.query)
    found = await visit.gpus()
    nodes = [
        node
        for node in found.nodes
        if node.most_free >= (filters.free or 0) and filters.node in ("", node.name)
    ]
    shown = view(_table(t), nodes, visit.query)
    pods = (await visit.watch(PODS, "")).rows(pod_row)
    colours = palette(by_of(visit.query.get("colour", "")), found.nodes)
    is_heat = _is_heat(visit.query, shown)
    # Of many nodes what is used is not asked, but read from the history: each is a connection.
    asked = shown.rows if found.totals.nodes > MOST_NODES_READ else found.nodes
    is_asked = not is_heat or asked is found.nodes
    names = frozenset(node.name for node in asked)
    read = await (visit.readings(names) if is_asked else visit.recent_use())
    return Shown(
        title=t("GPU map"),
        sentence=_sentence(t, visit.query, found, nodes, filters),
        command="gpupool gpu list; gpupool gpu pods",
        table=shown,
        values={
            "figures": _figures(t, found.totals, all_used_mib(found, read), pods),
            "lines": [] if is_heat else _lines(_drawing(visit, colours, read, pods), shown),
            "free": visit.query.get("free", ""),
            "any": bool(found.nodes),
            "colour": colours.by,
            "colours": [(by, t(words)) for by, words in COLOURS.items()],
            "legend": colours.legend(t),
            "panel": await panel_of(visit, found),
            "sizes": _sizes(visit, is_heat=is_heat),
            "size": visit.query.get("view", ""),
            "only": (filters.node, visit.link("map", **{**visit.query, "node": "", "view": ""})),
            "heat": _heat_links(visit) if is_heat else None,
            "is_recent": is_heat and not is_asked and colours.by is By.USE,
            "version": await heat_version(visit, found) if is_heat else "",
        },
    )


def _is_heat(query: Mapping[str, str], shown: TableView) -> bool:
    asked = query.get("view", "")
    return shown.found > _MOST_IN_DETAIL if asked not in ("detail", "heat") else asked == "heat"


def _sizes(visit: Visit, *, is_heat: bool) -> list[tuple[str, str, bool]]:
    """The two views: text, address, and whether it is this one."""
    t, query = visit.t, {**visit.query, "page": ""}
    return [
        (t("detail"), visit.link("map", **{**query, "view": "detail"}), not is_heat),
        (t("heat"), visit.link("map", **{**query, "view": "heat"}), is_heat),
    ]


def _heat_links(visit: Visit) -> tuple[str, str]:
    """Where the squares come from, and where a click on one leads, with its node added."""
    kept = {key: visit.query.get(key, "") for key in ("namespace", "colour")}
    return visit.link("map", "cards", **visit.query), visit.link("map", **kept, view="detail")


def _drawing(
    visit: Visit,
    colours: Palette,
    read: Mapping[str, CardReading],
    pods: Mapping[PodKey, PodRow],
) -> Drawing:
    return Drawing(
        visit.t,
        colours,
        read,
        used_of(read),
        pods,
        lambda _, part: _panel_link(visit, pod=f"{part.namespace}/{part.pod}"),
        lambda _, card: _panel_link(visit, card=card.card.uuid),
        filters_of(visit.query).mean_card,
        visit.query.get("card") or visit.query.get("pod", ""),
    )


def _panel_link(visit: Visit, *, card: str = "", pod: str = "") -> str:
    """The same map, with the panel of this card or pod."""
    return visit.link("map", **{**visit.query, "card": card, "pod": pod})


def _lines(drawn: Drawing, shown: TableView) -> list[NodeLine]:
    lines, before = [], None
    for node in shown.rows:
        lines.append(NodeLine(node, drawn.cells(node), node.pool != before))
        before = node.pool
    return lines


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
    found: Overview,
    nodes: list[NodeView],
    filters: Filters,
) -> str:
    if filters.free is None:
        return t(
            'Wanted a number of GiB that is free on one card, such as 6, found "{text}".',
            text=query.get("free", "")[:40],
        )
    if filters.free:
        return t(
            "{found} of {all} nodes have {wanted} GiB free on one card.",
            found=len(nodes),
            all=len(found.nodes),
            wanted=filters.free,
        )
    return most_free(t, nodes)


def most_free(t: Translate, nodes: Sequence[NodeView]) -> str:
    """Cards that are given whole only may have the most, which pods with a share cannot have."""
    most = max((node.most_free for node in nodes), default=0)
    shares = [node.most_free for node in nodes if node.gives_shares]
    if not shares or max(shares) == most:
        return t("The most that is free on one card is {most} GiB.", most=most)
    return t(
        "The most that is free on one card is {most} GiB, and for a pod with a share {share} GiB.",
        most=most,
        share=max(shares),
    )


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
        words=node_words,
        choices=(
            Choice("pool", t("Node pool"), lambda node: node.pool),
            Choice("model", t("Model"), lambda node: node.cards[0].card.model),
            Choice(
                "health", t("State"), worst_health, lambda value: t(HEALTH_WORDS.get(value, value))
            ),
        ),
        order="pool",
        empty=t("No node has GPUs. A node has them once its agent has found a driver."),
        page_rows=_NODES_A_PAGE,
    )


PAGE = Page(path="map", menu="map", show=_show, template="map.html")
