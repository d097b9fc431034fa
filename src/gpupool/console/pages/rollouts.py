"""The rollouts of a workload, and the way back: as `kubectl rollout history` and `undo`."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from gpupool.console.diffs import DiffLine, TooLong, diff
from gpupool.console.parts.action import Done, Question
from gpupool.console.parts.cells import Age, Cell, Level, Several, State, Text
from gpupool.console.parts.form import Invalid
from gpupool.console.parts.kinds import Doing, Section
from gpupool.console.parts.page import NoSuchThing
from gpupool.console.parts.table import Column, RowAction, Table, view
from gpupool.console.rights import Denied, Right
from gpupool.console.rows.revisions import (
    MOST_DIGITS,
    REVISION,
    RevisionRow,
    annotations_of,
    controller_revision_row,
    replica_set_row,
    without_hash,
)
from gpupool.console.visit import Visit
from gpupool.console.words import word
from gpupool.console.yaml_view import yaml_text
from kubeclient.client import JSON_PATCH, STRATEGIC_PATCH
from kubeclient.objects import Obj
from kubeclient.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, REPLICA_SETS, Resource

# Annotations of a Deployment that belong to the present, and not to a revision.
_OF_NOW = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
)


def _kept_as(resource: Resource) -> tuple[Resource, Callable[[Obj], RevisionRow]]:
    """Where a kind keeps its revisions."""
    if resource is DEPLOYMENTS:
        return REPLICA_SETS, replica_set_row
    return CONTROLLER_REVISIONS, controller_revision_row


async def history(resource: Resource, visit: Visit, workload: Obj) -> Section:
    t = visit.t
    try:
        rows = await _revisions(resource, visit, workload)
    except Denied as denied:
        words = t("You do not have the right: {right}", right=denied.right.words)
        return Section("history", t("Rollout history"), note=words)
    lacks = await visit.lacks(*_rights(resource, workload["metadata"]["namespace"]))
    table = view(_table(resource, visit, workload, rows, lacks), rows, {})
    return Section("history", t("Rollout history"), table)


async def _revisions(resource: Resource, visit: Visit, workload: Obj) -> list[RevisionRow]:
    """The latest first. Raises as `Visit.watch`."""
    kept, make = _kept_as(resource)
    metadata = workload["metadata"]
    rows = (await visit.watch(kept, metadata["namespace"])).rows(make).values()
    mine = (row for row in rows if row.owner == metadata["uid"])
    return sorted(mine, key=lambda row: row.number, reverse=True)


def _table(
    resource: Resource, visit: Visit, workload: Obj, rows: list[RevisionRow], lacks: str
) -> Table[RevisionRow]:
    t, metadata = visit.t, workload["metadata"]
    present = rows[0].number if rows else 0

    def number(row: RevisionRow) -> Cell:
        if row.number == present:
            return State(Level.GOOD, t("{number}, the present one", number=row.number))
        return Text(str(row.number))

    def actions(row: RevisionRow) -> tuple[RowAction, ...]:
        if row.number == present:
            return ()
        at = (resource.plural, metadata["namespace"], metadata["name"], "undo")
        return (RowAction(t("Back to this"), visit.link(*at, revision=str(row.number)), lacks),)

    return Table(
        columns=(
            Column("revision", t("Revision"), number),
            Column("image", t("Image"), lambda row: Several(tuple(map(Text, row.images)))),
            Column("cause", t("Cause"), lambda row: Text(row.cause or "–")),
            Column("created", t("Age"), lambda row: Age(row.created)),
        ),
        # Rows stand in the order of their keys: the latest first.
        key=lambda row: f"{10**MOST_DIGITS - row.number} {row.name}",
        words=lambda row: row.name,
        actions=actions,
        empty=t("There are no revisions yet."),
    )


def undo(resource: Resource) -> Doing:
    return Doing(
        "undo",
        word("Undo rollout"),
        partial(_rights, resource),
        partial(_ask, resource),
        partial(_do, resource),
        in_list=False,
        is_offered=partial(_has_earlier, resource),
    )


async def _has_earlier(resource: Resource, visit: Visit, workload: Obj) -> bool:
    try:
        return len(await _revisions(resource, visit, workload)) > 1
    except Denied:  # the button says which right it needs
        return True


def _rights(resource: Resource, namespace: str) -> tuple[Right, ...]:
    kept, _ = _kept_as(resource)
    reads = tuple(Right(verb, kept, namespace) for verb in ("list", "watch"))
    return (Right("patch", resource, namespace), *reads)


async def _ask(resource: Resource, visit: Visit) -> Question:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    workload = await visit.kube.get(resource, name, namespace)
    wanted = await _wanted(resource, visit, workload)
    kind, number = resource.kind.lower(), wanted.number
    command = f"kubectl rollout undo {kind} {name} --to-revision={number} --namespace {namespace}"
    present = workload["spec"]["template"]
    lines = await asyncio.to_thread(_compared, present, wanted.template)
    sentence = t("Its pods are replaced one after another. In the pods, this changes:")
    if not lines:
        sentence = t("Its pods are already as in this revision.")
    return Question(
        title=t("{name}: back to revision {number}", name=name, number=number),
        sentence=sentence,
        button=t("Back to revision {number}", number=number),
        diff=lines,
        command=command,
    )


def _compared(present: Obj, wanted: Obj) -> tuple[DiffLine, ...]:
    try:
        return diff(yaml_text(_sorted(present)), yaml_text(_sorted(wanted)))
    except TooLong:
        return (DiffLine("…", ""),)


def _sorted(value: object) -> object:
    """The order of fields means nothing, and the server may change it."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value) if value[key] is not None}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


async def _do(resource: Resource, visit: Visit, _: Mapping[str, str]) -> Done:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    workload = await visit.kube.get(resource, name, namespace)
    wanted = await _wanted(resource, visit, workload)
    if workload["spec"].get("paused"):
        raise Invalid({"": t("{name} is paused: resume it first.", name=name)})
    path = resource.path(namespace, name)
    if resource is DEPLOYMENTS:
        kept = await visit.kube.get(REPLICA_SETS, wanted.name, namespace)
        await visit.kube.patch(path, deployment_patch(workload, kept), content_type=JSON_PATCH)
    else:
        kept = await visit.kube.get(CONTROLLER_REVISIONS, wanted.name, namespace)
        await visit.kube.patch(path, kept["data"], content_type=STRATEGIC_PATCH)
    words = t("{name} goes back to revision {number}.", name=name, number=wanted.number)
    return Done(visit.link(resource.plural, namespace, name), words)


def deployment_patch(deployment: Obj, replica_set: Obj) -> list[Obj]:
    """What `kubectl rollout undo` sends."""
    now = {k: v for k, v in annotations_of(deployment).items() if k in _OF_NOW}
    then = {k: v for k, v in annotations_of(replica_set).items() if k not in _OF_NOW}
    template = without_hash(replica_set["spec"]["template"])
    return [
        {"op": "replace", "path": "/spec/template", "value": template},
        # "add" replaces what is there, and there may be none.
        {"op": "add", "path": "/metadata/annotations", "value": {**then, **now}},
    ]


async def _wanted(resource: Resource, visit: Visit, workload: Obj) -> RevisionRow:
    """That of the address; without one, that before the present one. Raises NoSuchThing."""
    rows = await _revisions(resource, visit, workload)
    asked = visit.query.get("revision", "")
    for row in rows[1:] if not asked else rows:
        if not asked or asked == str(row.number):
            return row
    name = workload["metadata"]["name"]
    if not asked:
        raise NoSuchThing(visit.t("an earlier revision of {name}", name=name))
    raise NoSuchThing(visit.t("revision {number} of {name}", number=asked, name=name))
