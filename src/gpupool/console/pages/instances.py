"""Existing instances: machines of this platform that node pools can be made of."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from gpupool.console.machines import offered_types
from gpupool.console.own_clusters import TOPIC, OwnClusters
from gpupool.console.pages.clusters import needed
from gpupool.console.parts.action import Action, Done, Question
from gpupool.console.parts.cells import Level, Link, State, Text
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.missing import NoSuchThing
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import Choice, Column, RowAction, Table, view
from gpupool.console.platform import MachineDesk, OwnMachine
from gpupool.console.render import cluster_address
from gpupool.console.rights import Right
from gpupool.console.visit import Visit

_MOST = 1_000


def _desk(visit: Visit) -> tuple[OwnClusters, MachineDesk]:
    """Raises NoSuchThing."""
    own = needed(visit)
    if own.platform.desk is None:
        raise NoSuchThing(visit.t("No clusters can be made on this machine."))
    return own, own.platform.desk


async def _show(visit: Visit) -> Shown:
    t, (own, desk) = visit.t, _desk(visit)
    known = await asyncio.to_thread(desk.known)
    add = RowAction(t("Add instances"), visit.link("create", "instances"))
    table = _table(visit, own, add)
    if known.problem:
        nothing = view(replace(table, empty=known.problem, empty_action=None), [], visit.query)
        return Shown(t("Existing instances"), command="gpupool machines", table=nothing)
    free = sum(not each.cluster for each in known.found)
    return Shown(
        title=t("Existing instances"),
        sentence=t("{free} of {all} instances are free.", free=free, all=len(known.found)),
        actions=(add,),
        command="gpupool machines",
        table=view(table, list(known.found), visit.query),
    )


def _table(visit: Visit, own: OwnClusters, add: RowAction) -> Table[OwnMachine]:
    t = visit.t
    cards = {each.name: f"{each.cards} × {each.model}" for each in visit.machines if each.cards}
    return Table(
        columns=(
            Column("name", t("Name"), lambda row: Text(row.name), lambda row: row.name),
            Column("type", t("Instance type"), lambda row: Text(row.instance_type)),
            Column("cards", t("Cards"), lambda row: Text(cards.get(row.instance_type, "–"))),
            Column("state", t("State"), lambda row: _state(visit, row)),
            Column("cluster", t("Cluster"), lambda row: _cluster(own, row)),
            Column("pool", t("Node pool"), lambda row: Text(row.pool or "–")),
        ),
        key=lambda row: row.name,
        words=lambda row: f"{row.name} {row.instance_type} {row.cluster} {row.pool}",
        choices=(
            Choice(
                "state",
                t("State"),
                lambda row: "used" if row.cluster else "free",
                {"free": t("Free"), "used": t("In use")}.__getitem__,
            ),
        ),
        actions=lambda row: _actions(visit, row),
        order="name",
        empty=t("There are no instances. Clusters get new ones."),
        empty_action=add,
    )


def _state(visit: Visit, row: OwnMachine) -> State:
    t = visit.t
    return State(Level.PLAIN, t("In use")) if row.cluster else State(Level.GOOD, t("Free"))


def _cluster(own: OwnClusters, row: OwnMachine) -> Link | Text:
    if not row.cluster:
        return Text("–")
    return Link(row.cluster, f"{cluster_address(own.platform.local_key(row.cluster))}/overview")


def _actions(visit: Visit, row: OwnMachine) -> tuple[RowAction, ...]:
    t = visit.t
    lacks = t("It is a node of cluster {name}.", name=row.cluster) if row.cluster else ""
    link = visit.link("instances", row.name, "remove")
    return (RowAction(t("Remove"), link, lacks, is_dangerous=True),)


def _no_rights(_: Visit) -> tuple[Right, ...]:
    """None of a cluster: whoever has the key is the owner of the console."""
    return ()


async def _ask_add(visit: Visit) -> Question:
    t, _ = visit.t, _desk(visit)
    known = {each.name: each for each in visit.machines}
    types = offered_types(t, known, known)
    return Question(
        title=t("Add instances"),
        sentence=t("They belong to no cluster until a node pool is made of them."),
        button=t("Add instances"),
        fields=(
            Field(
                "type",
                t("Instance type"),
                FieldKind.CHOICE,
                value=types[0][0] if types else "",
                choices=types,
                groups={each.name: each.family for each in visit.machines},
            ),
            Field("count", t("How many"), FieldKind.NUMBER, value="1", least=1, most=_MOST),
            Field(
                "names",
                t("Names"),
                FieldKind.LINES,
                t("One per line, in place of a number. Nodes get these names."),
                longest=64_000,
                rows=3,
            ),
        ),
        command="gpupool machines add TYPE --count N",
    )


async def _add(visit: Visit, values: Mapping[str, str]) -> Done:
    t, (own, desk) = visit.t, _desk(visit)
    names = tuple(values["names"].split())
    count = 0 if names else int(values["count"] or 1)
    if wrong := await asyncio.to_thread(desk.add, values["type"], names, count):
        raise Invalid({"names" if names else "": wrong})
    own.sights.say(TOPIC)
    words = t("Instances added: {count}.", count=len(names) or count)
    return Done(visit.link("instances"), words)


async def _ask_remove(visit: Visit) -> Question:
    t, name = visit.t, visit.names["name"]
    own, _ = _desk(visit)
    if name not in {each.name for each in await own.machines()}:
        raise NoSuchThing(t('instance "{name}"', name=name))
    return Question(
        title=t("Remove instance {name}", name=name),
        button=t("Remove instance {name}", name=name),
        is_dangerous=True,
        command=f"gpupool machines remove {name}",
    )


async def _remove(visit: Visit, _: Mapping[str, str]) -> Done:
    name, (own, desk) = visit.names["name"], _desk(visit)
    if wrong := await asyncio.to_thread(desk.remove, name):
        raise Invalid({"": wrong})
    own.sights.say(TOPIC)
    return Done(visit.link("instances"), visit.t("Instance {name} is removed.", name=name))


PAGE = Page("instances", "clusters", _show)
ACTIONS = (
    Action("create/instances", "clusters", _no_rights, _ask_add, _add),
    Action("instances/{name}/remove", "clusters", _no_rights, _ask_remove, _remove),
)
