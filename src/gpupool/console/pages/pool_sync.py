"""Gives the nodes of a pool the labels and taints that the pool has got."""

import contextlib

from gpupool.console.parts.form import Invalid
from gpupool.console.parts.lines import taint_kind
from gpupool.console.rights import Right
from gpupool.console.rows.nodes import node_row
from gpupool.console.visit import Visit
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import NODES

_MOST = 1_000  # a form is waited for


async def most_synced(visit: Visit, pool: str) -> None:
    """Before anything is changed: whether it can be done. Raises Invalid."""
    if lacks := await visit.lacks(Right("patch", NODES)):
        raise Invalid({"sync": lacks})
    rows = await visit.rows(NODES, node_row)
    count = sum(row.pool == pool for row in rows)
    if count > _MOST:
        words = visit.t("Wanted at most {most} nodes, found {count}.", most=_MOST, count=count)
        raise Invalid({"sync": words})


async def sync_nodes(visit: Visit, pool: str, before: Obj, after: Obj) -> int:
    """How many nodes were changed. Raises KubeError."""
    changed = 0
    rows = await visit.rows(NODES, node_row)
    for name in sorted(row.name for row in rows if row.pool == pool):
        with contextlib.suppress(NotFound):
            node = await visit.kube.get(NODES, name)
            if patch := node_patch(node, before, after):
                await visit.kube.patch(NODES.path(name=name), patch)
                changed += 1
    return changed


def node_patch(node: Obj, before: Obj, after: Obj) -> Obj:
    """Empty: the node is as it is to be. What others have put on the node stays."""
    labels = node["metadata"].get("labels") or {}
    had, wanted = before.get("labels") or {}, after.get("labels") or {}
    moved: dict[str, str | None] = {k: v for k, v in wanted.items() if labels.get(k) != v}
    moved |= {k: None for k in had if k not in wanted and k in labels}
    taints = (node.get("spec") or {}).get("taints") or []
    meant = _taints(taints, before.get("taints") or [], after.get("taints") or [])
    patch: Obj = {"metadata": {"labels": moved}} if moved else {}
    if meant != taints:
        patch["spec"] = {"taints": meant or None}
    if patch:
        # A list of taints is written as a whole: what somebody adds meanwhile must not be lost.
        version = node["metadata"]["resourceVersion"]
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": version}
    return patch


def _taints(there: list[Obj], had: list[Obj], wanted: list[Obj]) -> list[Obj]:
    pools = {taint_kind(each) for each in (*had, *wanted)}
    now = {_same(each): each for each in there}
    others = [each for each in there if taint_kind(each) not in pools]
    # One that is there already keeps the time since when it is.
    return others + [now.get(_same(each), each) for each in wanted]


def _same(taint: Obj) -> tuple[str, str, str]:
    return (*taint_kind(taint), str(taint.get("value") or ""))
