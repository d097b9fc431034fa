"""Node pools: the list. Where the cluster has no NodePools, pools are labels of nodes."""

from collections import defaultdict

from gpupool.console.pages.pool_form import PRESETS
from gpupool.console.parts.cells import Age, Level, Link, Several, State, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, RowAction, Table, view
from gpupool.console.rights import Right
from gpupool.console.rows.nodes import NodeRow, node_row
from gpupool.console.rows.pools import NODE_POOLS, PoolRow, pool_row
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.console.words import Translate, word
from kubeclient.errors import NotFound
from kubeclient.resources import NODES

_PHASES = {
    "Initializing": (Level.WAITS, word("Initializing")),
    "Active": (Level.GOOD, word("Active")),
    "Failed": (Level.BAD, word("Failed")),
}


async def _show(visit: Visit) -> Shown:
    t = visit.t
    if not await has_pools(visit):
        return await _by_label(visit)
    rows = await visit.rows(NODE_POOLS, pool_row)
    may_create = await visit.lacks(Right("create", NODE_POOLS))
    active = sum(row.phase == "Active" for row in rows)
    return Shown(
        title=t("Node pools"),
        sentence=t("{active} of {all} node pools are active.", active=active, all=len(rows)),
        actions=_creations(visit, may_create, {row.name for row in rows}),
        command="kubectl get nodepools",
        table=view(await _table(visit, may_create, rows), rows, visit.query),
    )


async def has_pools(visit: Visit) -> bool:
    """Only a local cluster keeps machines, and has our kind NodePool."""
    try:
        found = await visit.kube.page(f"/apis/{NODE_POOLS.group}/{NODE_POOLS.version}")
    except NotFound:
        return False
    # The group may be there for other kinds.
    return any(each.get("name") == NODE_POOLS.plural for each in found.get("resources") or ())


def _creations(visit: Visit, lacks: str, there: set[str]) -> tuple[RowAction, ...]:
    """The document makes the two preset pools: each is one click, and can be changed before."""
    t = visit.t
    kinds = (
        (t("Create node pool"), ""),
        (t("Create managed node pool"), "managed"),
        (t("Configure auto scaling"), "scaling"),
    )
    presets = [each for each in PRESETS if each not in there]
    return (
        *(
            RowAction(words, visit.link("create", "pool", kind=each), lacks)
            for words, each in kinds
        ),
        *(
            RowAction(f"+ {each}", visit.link("create", "pool", preset=each), lacks)
            for each in presets
        ),
    )


async def pool_buttons(visit: Visit, name: str) -> tuple[RowAction, ...]:
    t = visit.t
    may_change = await visit.lacks(Right("patch", NODE_POOLS))
    may_delete = await visit.lacks(Right("delete", NODE_POOLS))
    delete = visit.link("pools", name, "delete")
    return (
        RowAction(t("Scale out"), visit.link("pools", name, "scale"), may_change),
        RowAction(t("Edit"), visit.link("pools", name, "edit"), may_change),
        RowAction(t("Delete"), delete, may_delete, is_dangerous=True),
    )


async def _by_label(visit: Visit) -> Shown:
    t = visit.t
    pools: dict[str, list[NodeRow]] = defaultdict(list)
    for node in await visit.rows(NODES, node_row):
        if node.pool:
            pools[node.pool].append(node)
    rows = [_labelled(name, nodes) for name, nodes in pools.items()]
    return Shown(
        title=t("Node pools"),
        sentence=t(
            "This cluster has no NodePool objects: pools are a label of nodes, and are only shown."
        ),
        command="kubectl get nodes -L node.gpupool.io/pool",
        table=view(await _table(visit, None, rows), rows, visit.query),
    )


def _labelled(name: str, nodes: list[NodeRow]) -> PoolRow:
    types = sorted({node.instance_type for node in nodes if node.instance_type})
    return PoolRow(
        name=name,
        phase="",
        why="",
        instance_type=", ".join(types),
        os=", ".join(sorted({node.os for node in nodes if node.os})),
        wanted=len(nodes),
        nodes=len(nodes),
        ready=sum(node.is_ready for node in nodes),
        labels=(),
        scaling="",
        is_managed=False,
        created=min(node.created for node in nodes),
    )


async def _table(visit: Visit, may_create: str | None, rows: list[PoolRow]) -> Table[PoolRow]:
    """`may_create`: why the visitor may not create pools; None: there are none to create."""
    t = visit.t
    is_kind = may_create is not None
    buttons = {row.name: await pool_buttons(visit, row.name) for row in rows} if is_kind else {}

    def link(row: PoolRow) -> Link:
        href = visit.link("pools", row.name) if is_kind else visit.link("nodes", pool=row.name)
        return Link(row.name, href)

    return Table(
        columns=(
            Column("name", t("Name"), link, lambda row: row.name),
            Column("state", t("State"), lambda row: pool_state(t, row), lambda row: row.phase),
            Column("type", t("Type"), lambda row: Text(pool_type(t, row))),
            Column(
                "instance",
                t("Instance type"),
                lambda row: Several((Text(row.instance_type or "–"), Text(row.os))),
            ),
            Column(
                "nodes",
                t("Nodes (ready/wanted)"),
                lambda row: Link(f"{row.ready}/{row.wanted}", visit.link("nodes", pool=row.name)),
                lambda row: row.wanted,
            ),
            Column("labels", t("Labels"), _labels),
            Column("created", t("Age"), lambda row: Age(row.created), lambda row: row.created),
        ),
        key=lambda row: row.name,
        words=lambda row: f"{row.name} {row.instance_type} {row.os}",
        actions=lambda row: buttons.get(row.name, ()),
        order="name",
        empty=t("There are no node pools."),
        empty_action=_creations(visit, may_create, set())[0] if may_create is not None else None,
        choices=(
            Choice("state", t("State"), lambda row: row.phase, lambda value: _phase_word(t, value)),
            Choice("instance", t("Instance type"), lambda row: row.instance_type),
        ),
    )


def _phase_word(t: Translate, phase: str) -> str:
    return t(_PHASES.get(phase, (Level.PLAIN, phase))[1])


def pool_state(t: Translate, row: PoolRow) -> Several | Text:
    if not row.phase:
        return Text("–")
    level, words = _PHASES.get(row.phase, (Level.PLAIN, row.phase))
    state = State(level, t(words), said(t, row.why))
    return Several((state, Text(said(t, row.why)))) if row.why else Several((state,))


def pool_type(t: Translate, row: PoolRow) -> str:
    if row.scaling:
        return t("auto scaling {range}", range=row.scaling)
    return t("managed") if row.is_managed else t("custom")


def _labels(row: PoolRow) -> Several:
    return Several(tuple(Text(f"{key}={value}") for key, value in row.labels))


PAGE = Page(path="pools", menu="pools", show=_show)
