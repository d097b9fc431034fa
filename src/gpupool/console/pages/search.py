"""Search: objects of every kind by a part of their name. The box at the top (Ctrl-K) asks it."""

from dataclasses import dataclass

from gpupool.console.pages.addresses import address_of
from gpupool.console.pages.pools import has_pools
from gpupool.console.parts.cells import Link, Text
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, Table, view
from gpupool.console.rights import Denied
from gpupool.console.rows.pools import NODE_POOLS
from gpupool.console.visit import Visit
from kubeclient.objects import Obj
from kubeclient.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)

_WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS)
# Not Secrets: a copy of them all would be kept for a name.
_SEARCHED = (NODES, PODS, *_WORKLOADS, SERVICES, CONFIG_MAPS, NODE_POOLS)


@dataclass(frozen=True, slots=True)
class Found:
    kind: str
    namespace: str
    name: str
    rank: int  # 0: it is the name, 1: the name begins with it, 2: it is somewhere in it


async def _show(visit: Visit) -> Shown:
    t, text = visit.t, visit.query.get("q", "").strip()
    rows, hidden = await _search(visit, text) if text else ([], [])
    sentence = t("Objects of every kind, by a part of their name.")
    if text:
        sentence = t("Objects found: {count}.", count=len(rows))
    if hidden:
        kinds = ", ".join(hidden)
        sentence += " " + t("Not searched, because you may not list them: {kinds}.", kinds=kinds)
    kinds = ",".join(each.plural for each in _SEARCHED)
    return Shown(
        title=t("Search"),
        sentence=sentence,
        command=f"kubectl get {kinds} --all-namespaces | grep TEXT",
        table=view(_table(visit), rows, visit.query),
        values={"text": text},
    )


async def _search(visit: Visit, text: str) -> tuple[list[Found], list[str]]:
    """What was found, and the kinds that the visitor may not list."""
    wanted = text.casefold()
    found: list[Found] = []
    hidden: list[str] = []
    for resource in _SEARCHED:
        if resource is NODE_POOLS and not await has_pools(visit):
            continue
        try:
            names = await visit.rows(resource, _name_of)
        except Denied:
            hidden.append(resource.plural)
            continue
        found += (
            Found(resource.kind, namespace, name, rank_of(name, wanted))
            for namespace, name in names
            if all(part in f"{namespace}/{name}".casefold() for part in wanted.split())
        )
    return found, hidden


def _name_of(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def rank_of(name: str, wanted: str) -> int:
    return 0 if name == wanted else 1 if name.startswith(wanted) else 2


def _table(visit: Visit) -> Table[Found]:
    t = visit.t

    def link(row: Found) -> Link:
        return Link(row.name, address_of(visit, row.kind, row.namespace, row.name))

    return Table(
        columns=(
            Column("name", t("Name"), link),
            Column("kind", t("Kind"), lambda row: Text(row.kind)),
            Column("in", t("Namespace"), lambda row: Text(row.namespace or "–")),
        ),
        # The best first: rows stand in the order of their keys.
        key=lambda row: f"{row.rank} {row.name} {row.kind} {row.namespace}",
        words=lambda row: f"{row.namespace}/{row.name}",
        choices=(Choice("kind", t("Kind"), lambda row: row.kind),),
        empty=t("Type a part of a name."),
    )


PAGE = Page(path="search", menu="search", show=_show, template="search.html")
