"""Nodes: the list."""

from collections.abc import Callable, Mapping

from gpupool.console.gpus import NodeView
from gpupool.console.pages.node_actions import switch
from gpupool.console.pages.node_drain import RIGHTS as DRAIN_RIGHTS
from gpupool.console.parts.cells import Age, Bar, Level, Link, Several, State, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, RowAction, Table, view
from gpupool.console.rights import Denied, Right
from gpupool.console.rows.node_use import NodeUse, cores, gib, node_use
from gpupool.console.rows.nodes import NodeRow, node_row
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from kubeclient.resources import NODES

_NOTHING = NodeUse(0, 0, 0)
_STATES = {
    "ready": word("Ready"),
    "cordoned": word("Unschedulable"),
    "not-ready": word("Not ready"),
}


async def _show(visit: Visit) -> Shown:
    t = visit.t
    rows = await visit.rows(NODES, node_row)
    ready = sum(row.is_ready for row in rows)
    sentence = t("{ready} of {all} nodes are ready.", ready=ready, all=len(rows))
    if cordoned := sum(row.is_cordoned for row in rows):
        sentence += " " + t("Unschedulable: {count}.", count=cordoned)
    return Shown(
        title=t("Nodes"),
        sentence=sentence,
        command="kubectl get nodes -o wide",
        table=view(await node_table(visit), rows, visit.query),
    )


async def _gpus(visit: Visit) -> Mapping[str, NodeView]:
    """Empty for a visitor who may not see all pods: who holds what is unknown then."""
    try:
        return {node.name: node for node in (await visit.gpus()).nodes}
    except Denied:
        return {}


async def _uses(visit: Visit) -> Callable[[NodeRow], NodeUse | None]:
    """What pods have requested of each node. Unknown to a visitor who may not see all pods."""
    try:
        model = await visit.model()
    except Denied:
        return lambda row: None
    return lambda row: node_use(model.cluster, row.name)


async def node_table(visit: Visit) -> Table[NodeRow]:
    t, use, gpus = visit.t, await _uses(visit), await _gpus(visit)
    lacks = await visit.lacks(Right("patch", NODES))
    lacks_drain = await visit.lacks(*DRAIN_RIGHTS)

    def actions(row: NodeRow) -> tuple[RowAction, ...]:
        drain = RowAction(t("Drain"), visit.link("nodes", row.name, "drain"), lacks_drain)
        return (switch(visit, row.name, is_cordoned=row.is_cordoned, lacks=lacks), drain)

    return Table(
        columns=(
            Column(
                "name",
                t("Name"),
                lambda row: Several(
                    (Link(row.name, visit.link("nodes", row.name)), Text(row.address))
                ),
                lambda row: row.name,
            ),
            Column("state", t("State"), lambda row: _state_and_role(t, row), _state_key),
            Column(
                "pool",
                t("Node pool"),
                lambda row: Several((Text(row.pool or "–"), Text(row.instance_type))),
                lambda row: row.pool,
            ),
            Column("cards", t("Cards"), lambda row: _cards(t, row), lambda row: row.cards),
            Column(
                "allocated",
                t("Allocated"),
                lambda row: _allocated(row, gpus.get(row.name)),
                lambda row: _used(gpus.get(row.name)),
            ),
            Column(
                "requested",
                t("Requested"),
                lambda row: Several((cpu_bar(row, use(row)), memory_bar(row, use(row)))),
                lambda row: (use(row) or _NOTHING).cpu_milli,
            ),
            Column("version", t("Version"), lambda row: Text(row.version)),
            Column("created", t("Age"), lambda row: Age(row.created), lambda row: row.created),
        ),
        key=lambda row: row.name,
        words=lambda row: " ".join(
            (row.name, row.address, row.pool, row.instance_type, *row.models, *row.roles)
        ),
        choices=(
            Choice("pool", t("Node pool"), lambda row: row.pool),
            Choice("state", t("State"), _state_word, lambda value: t(_STATES[value])),
            Choice("model", t("Model"), lambda row: ", ".join(row.models)),
        ),
        actions=actions,
        order="name",
        empty=t("The cluster has no nodes."),
        empty_action=RowAction(t("Node pools"), visit.link("pools"), is_page=True),
    )


def _state_and_role(t: Translate, row: NodeRow) -> Several:
    return Several((node_state(t, row), Text(", ".join(row.roles) or t("worker"))))


def cpu_bar(row: NodeRow, use: NodeUse | None) -> Bar | Text:
    if use is None:
        return Text("–")
    shown = f"{cores(use.cpu_milli)} / {cores(row.cpu_milli)} CPU"
    return Bar(use.cpu_milli, row.cpu_milli, shown)


def memory_bar(row: NodeRow, use: NodeUse | None) -> Bar | Text:
    if use is None:
        return Text("–")
    shown = f"{gib(use.memory_bytes)} / {gib(row.memory_bytes)} GiB"
    return Bar(use.memory_bytes, row.memory_bytes, shown)


def _state_word(row: NodeRow) -> str:
    if not row.is_ready:
        return "not-ready"
    return "cordoned" if row.is_cordoned else "ready"


def node_state(t: Translate, row: NodeRow) -> State:
    if not row.is_ready:
        return State(Level.BAD, t("Not ready"), row.trouble)
    if row.is_cordoned:
        return State(Level.WAITS, t("Unschedulable"))
    return State(Level.GOOD, t("Ready"))


def _state_key(row: NodeRow) -> tuple[bool, bool]:
    return row.is_ready, not row.is_cordoned


def _cards(t: Translate, row: NodeRow) -> Several | Text:
    if not row.cards:
        return Text("–")
    shown = Text(f"{row.cards} × {', '.join(row.models)}")
    if not row.sick:
        return Several((shown,))
    return Several((shown, State(Level.BAD, t("{count} take no pods", count=row.sick))))


def _allocated(row: NodeRow, gpus: NodeView | None) -> Bar | Text:
    if gpus is None or not row.units:
        return Text("–")
    used = _used(gpus)
    return Bar(used, row.units, f"{used} / {row.units} GiB")


def _used(gpus: NodeView | None) -> int:
    return sum(card.used for card in gpus.cards) if gpus is not None else 0


PAGE = Page(path="nodes", menu="nodes", show=_show)
