"""Node pools: the list. Where the cluster has no NodePools, pools are labels of nodes."""

from collections import defaultdict

from gpupool.console.parts.cells import Age, Level, Link, Several, State, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Column, RowAction, Table, view
from gpupool.console.rights import Right
from gpupool.console.rows.nodes import NodeRow, node_row
from gpupool.console.rows.pools import NODE_POOLS, PoolRow, pool_row
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
        actions=_creations(visit, may_create),
        command="kubectl get nodepools",
        table=view(await _table(visit, may_create), rows, visit.query),
    )


async def has_pools(visit: Visit) -> bool:
    """Only a local cluster keeps machines, and has our kind NodePool."""
    try:
        await visit.kube.page(f"/apis/{NODE_POOLS.group}/{NODE_POOLS.version}")
    except NotFound:
        return False
    return True


def _creations(visit: Visit, lacks: str) -> tuple[RowAction, ...]:
    """The document makes these two pools: each is one click, and can be changed before."""
    t = visit.t
    presets = ("cgpu", "cgpu-no-isolation")
    return (
        RowAction(t("Create node pool"), visit.link("pools", "create"), lacks),
        *(
            RowAction(f"+ {each}", visit.link("pools", "create", preset=each), lacks)
            for each in presets
        ),
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
        table=view(await _table(visit, None), rows, visit.query),
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


async def _table(visit: Visit, may_create: str | None) -> Table[PoolRow]:
    """`may_create`: why the visitor may not create pools; None: there are none to create."""
    t = visit.t
    may_scale = await visit.lacks(Right("patch", NODE_POOLS)) if may_create is not None else ""
    may_delete = await visit.lacks(Right("delete", NODE_POOLS)) if may_create is not None else ""

    def actions(row: PoolRow) -> tuple[RowAction, ...]:
        if may_create is None:
            return ()
        return (
            RowAction(t("Scale out"), visit.link("pools", row.name, "scale"), may_scale),
            RowAction(
                t("Delete"), visit.link("pools", row.name, "delete"), may_delete, is_dangerous=True
            ),
        )

    return Table(
        columns=(
            Column(
                "name",
                t("Name"),
                lambda row: Link(row.name, visit.link("nodes", pool=row.name)),
                lambda row: row.name,
            ),
            Column("state", t("State"), lambda row: _state(t, row), lambda row: row.phase),
            Column("type", t("Type"), lambda row: Text(_type(t, row))),
            Column(
                "instance",
                t("Instance type"),
                lambda row: Several((Text(row.instance_type or "–"), Text(row.os))),
            ),
            Column(
                "nodes",
                t("Nodes (ready/wanted)"),
                lambda row: Text(f"{row.ready}/{row.wanted}"),
                lambda row: row.wanted,
            ),
            Column("labels", t("Labels"), _labels),
            Column("created", t("Age"), lambda row: Age(row.created), lambda row: row.created),
        ),
        key=lambda row: row.name,
        words=lambda row: f"{row.name} {row.instance_type} {row.os}",
        actions=actions,
        order="name",
        empty=t("There are no node pools."),
    )


def _state(t: Translate, row: PoolRow) -> Several | Text:
    if not row.phase:
        return Text("–")
    level, words = _PHASES.get(row.phase, (Level.PLAIN, row.phase))
    state = State(level, t(words), row.why)
    return Several((state, Text(row.why))) if row.why else Several((state,))


def _type(t: Translate, row: PoolRow) -> str:
    if row.scaling:
        return t("auto scaling {range}", range=row.scaling)
    return t("managed") if row.is_managed else t("custom")


def _labels(row: PoolRow) -> Several:
    return Several(tuple(Text(f"{key}={value}") for key, value in row.labels))


PAGE = Page(path="pools", menu="pools", show=_show)
