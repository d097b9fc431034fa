"""One node pool: what its nodes are made of, which they are, events, YAML."""

from dataclasses import replace

from gpupool.console.pages.node import events_of
from gpupool.console.pages.nodes import node_table
from gpupool.console.pages.pools import has_pools, pool_buttons, pool_state, pool_type
from gpupool.console.parts.lines import taint_words
from gpupool.console.parts.page import NoSuchThing, Page, Shown
from gpupool.console.parts.table import TableView, view
from gpupool.console.rights import Denied
from gpupool.console.rows.nodes import NodeRow, node_row
from gpupool.console.rows.pools import NODE_POOLS, PoolRow, pool_row
from gpupool.console.said import said
from gpupool.console.visit import Visit
from gpupool.console.words import Translate
from gpupool.console.yaml_view import yaml_of
from kubeclient.resources import NODES


async def _show(visit: Visit) -> Shown:
    t, name = visit.t, visit.names["pool"]
    # Where there is no such kind, its first list would be waited for in vain.
    is_kind = await has_pools(visit)
    pool = (await visit.watch(NODE_POOLS)).mirror.get(name) if is_kind else None
    if pool is None:
        raise NoSuchThing(t('node pool "{name}"', name=name))
    row, spec = pool_row(pool), pool.get("spec") or {}
    nodes = await _nodes(visit, name)
    return Shown(
        title=name,
        sentence=_sentence(t, row, is_going="deletionTimestamp" in pool["metadata"]),
        crumbs=((t("Node pools"), visit.link("pools")),),
        actions=await pool_buttons(visit, name),
        command=f"kubectl describe nodepool {name}",
        values={
            "row": row,
            "state": pool_state(t, row),
            "type": pool_type(t, row),
            "tags": sorted((spec.get("tags") or {}).items()),
            "group": spec.get("resourceGroup") or "",
            "taints": [taint_words(each) for each in spec.get("taints") or []],
            "nodes": await _node_view(visit, nodes) if nodes is not None else None,
            "events": await events_of(visit, NODE_POOLS.kind, name),
            "yaml": yaml_of(pool),
        },
    )


def _sentence(t: Translate, row: PoolRow, *, is_going: bool) -> str:
    if is_going:
        return t("It is being deleted: its nodes are drained and removed.")
    words = t("{ready} of {all} nodes are ready.", ready=row.ready, all=row.wanted)
    return f"{words} {said(t, row.why)}" if row.why else words


async def _node_view(visit: Visit, nodes: list[NodeRow]) -> TableView:
    of_pool = replace(await node_table(visit), empty=visit.t("It has no nodes."), empty_action=None)
    return view(of_pool, nodes, {})


async def _nodes(visit: Visit, pool: str) -> list[NodeRow] | None:
    try:
        rows = await visit.rows(NODES, node_row)
    except Denied:
        return None
    return [row for row in rows if row.pool == pool]


PAGE = Page("pools/{pool}", "pools", _show, template="pool.html")
