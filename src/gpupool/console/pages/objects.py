"""The list, the page and the actions of a kind of objects, made from its `Kind`."""

from collections.abc import Iterable

from gpupool.console.pages.node import events_of
from gpupool.console.parts.action import Action
from gpupool.console.parts.cells import Age, Cell, Link, Text
from gpupool.console.parts.kinds import Doing, Kind, Row, action_of
from gpupool.console.parts.page import NoSuchThing, Page, Shown
from gpupool.console.parts.table import Column, RowAction, Table, view
from gpupool.console.visit import Visit
from gpupool.console.yaml_view import yaml_of
from kubeclient.objects import Obj


def pages_of(kind: Kind[Row]) -> tuple[Page, ...]:
    async def listed(visit: Visit) -> Shown:
        return await _list(kind, visit)

    async def one(visit: Visit) -> Shown:
        return await _one(kind, visit)

    return (
        Page(path=kind.path, menu=kind.path, show=listed),
        Page(path=_at(kind), menu=kind.path, show=one, template="object.html"),
    )


def actions_of(kind: Kind[Row]) -> tuple[Action, ...]:
    return tuple(action_of(doing, _at(kind), kind.path) for doing in kind.doings)


def _at(kind: Kind[Row]) -> str:
    return f"{kind.path}/{{namespace}}/{{name}}"


async def _list(kind: Kind[Row], visit: Visit) -> Shown:
    rows = await visit.rows(kind.resource, kind.row)
    listed = [each for each in kind.doings if each.in_list]
    lacks = await _lacks(visit, listed, visit.namespace)
    creates = await kind.creates(visit)
    where = f"--namespace {visit.namespace}" if visit.namespace else "--all-namespaces"
    return Shown(
        title=visit.t(kind.title),
        sentence=kind.sentence(visit, rows),
        actions=creates,
        command=f"kubectl get {kind.path} {where}",
        table=view(object_table(kind, visit, lacks, creates), rows, visit.query),
    )


def object_table(
    kind: Kind[Row], visit: Visit, lacks: dict[str, str], creates: tuple[RowAction, ...] = ()
) -> Table[Row]:
    """`lacks`: why the visitor may not, by the key of what can be done; others are left out."""
    t = visit.t

    def name(row: Row) -> Cell:
        return Link(row.name, visit.link(kind.path, row.namespace, row.name))

    return Table(
        columns=(
            Column("name", t("Name"), name, lambda row: row.name),
            Column(
                "in", t("Namespace"), lambda row: Text(row.namespace), lambda row: row.namespace
            ),
            *kind.columns(visit),
            Column("created", t("Age"), lambda row: Age(row.created), lambda row: row.created),
        ),
        key=lambda row: f"{row.namespace}/{row.name}",
        words=lambda row: f"{row.namespace}/{row.name} {kind.words(row)}",
        choices=kind.choices(visit),
        actions=lambda row: _buttons(kind, visit, row, lacks),
        order="name",
        empty=t("There are none here yet."),
        empty_action=next(iter(creates), None),
    )


async def _lacks(visit: Visit, doings: Iterable[Doing], namespace: str) -> dict[str, str]:
    return {each.key: await visit.lacks(*each.rights(namespace)) for each in doings}


def _buttons(
    kind: Kind[Row], visit: Visit, row: Row, lacks: dict[str, str]
) -> tuple[RowAction, ...]:
    return tuple(
        RowAction(
            visit.t(doing.label),
            visit.link(kind.path, row.namespace, row.name, doing.key),
            lacks[doing.key],
            doing.is_dangerous,
            doing.is_page,
        )
        for doing in kind.doings
        if doing.key in lacks and doing.fits(row)
    )


async def found_object(kind: Kind[Row], visit: Visit) -> Obj:
    """Raises NoSuchThing, and as `Visit.watch`."""
    namespace, name = visit.names["namespace"], visit.names["name"]
    found = (await visit.watch(kind.resource, namespace)).mirror.get(name, namespace)
    if found is None:
        words = visit.t(
            '{kind} "{name}" in namespace "{namespace}"',
            kind=kind.resource.kind,
            name=name,
            namespace=namespace,
        )
        raise NoSuchThing(words)
    return found


async def _one(kind: Kind[Row], visit: Visit) -> Shown:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    obj = await found_object(kind, visit)
    row = kind.row(obj)
    columns = object_table(kind, visit, {}).columns[1:]
    offered = [each for each in kind.doings if await each.is_offered(visit, obj)]
    return Shown(
        title=name,
        sentence=kind.state(visit, row),
        crumbs=(
            (t(kind.title), visit.link(kind.path)),
            (namespace, visit.link(kind.path, namespace=namespace)),
        ),
        actions=_buttons(kind, visit, row, await _lacks(visit, offered, namespace)),
        command=f"kubectl describe {kind.resource.kind.lower()} {name} --namespace {namespace}",
        values={
            "facts": tuple((column.label, column.cell(row)) for column in columns),
            "labels": row.labels,
            "sections": await kind.sections(visit, obj, row),
            "events": await events_of(visit, kind.resource.kind, name, namespace),
            "yaml": yaml_of(obj) if kind.has_yaml else "",
        },
    )
