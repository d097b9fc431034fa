"""Edit an object as YAML: what would change is shown first, as the API server would have it.

The text is that of one version of the object. If somebody else changes the object meanwhile, the
visitor is told and sees the differences to the present one before anything is saved. Controllers
write the status of objects all the time: that alone is not such a change.

Large objects take seconds to write, to read and to compare: all of it is done in threads, so that
other visitors do not wait.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from gpupool.console.complaints import BadManifest, Complaint, complaints_of, errors_of, line_of
from gpupool.console.diffs import DiffLine, TooLong, diff
from gpupool.console.manifests import MANAGER
from gpupool.console.parts.action import Checked, Done, Question
from gpupool.console.parts.form import Field, FieldKind, Invalid
from gpupool.console.parts.kinds import Doing, action_of
from gpupool.console.parts.table import RowAction
from gpupool.console.rights import Right
from gpupool.console.visit import Visit
from gpupool.console.words import word
from gpupool.console.yaml_view import editable_yaml
from gpupool.contract.yaml_document import Document, read_document
from kubeclient.errors import Conflict, Refused
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS, Resource

_LONGEST = 1_000_000
_TRIES = 5  # against controllers, which write too
_DRY = {"dryRun": "All"}
# Typing mistakes in names of fields are refused, and not passed over in silence.
_STRICT = {"fieldManager": MANAGER, "fieldValidation": "Strict"}

Place = Callable[[Visit], tuple[str, str]]  # namespace and name of the object


def in_namespace(visit: Visit) -> tuple[str, str]:
    return visit.names["namespace"], visit.names["name"]


def of_node(visit: Visit) -> tuple[str, str]:
    return "", visit.names["node"]


def edit(resource: Resource, place: Place = in_namespace) -> Doing:
    def rights(namespace: str) -> tuple[Right, ...]:
        return tuple(Right(verb, resource, namespace) for verb in ("get", "update"))

    back = partial(_back, resource.plural, place)
    return Doing(
        "edit",
        word("Edit YAML"),
        rights,
        partial(_ask, resource, place, back),
        partial(_do, resource, place, back),
        template="edit.html",
        in_list=False,
        is_page=True,
    )


def _back(page: str, place: Place, visit: Visit) -> str:
    return visit.link(page, *(part for part in place(visit) if part))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the visitor typed."""

    obj: Obj
    document: Document


async def _ask(
    resource: Resource, place: Place, back: Callable[[Visit], str], visit: Visit
) -> Question:
    t, (namespace, name) = visit.t, place(visit)
    obj = await _read(resource, place, visit)
    where = f" --namespace {namespace}" if namespace else ""
    return Question(
        title=t("Edit {kind} {name}", kind=resource.kind, name=name),
        sentence=t("Nothing changes before you have seen what would change."),
        button=t("Show changes"),
        fields=(
            Field(
                "manifest",
                "YAML",
                FieldKind.LINES,
                value=await asyncio.to_thread(editable_yaml, obj),
                is_required=True,
                longest=_LONGEST,
            ),
            Field("version", "", FieldKind.HIDDEN, value=await _version(obj)),
            Field("seen", "", FieldKind.HIDDEN),
            Field("step", "", FieldKind.HIDDEN),
        ),
        command=f"kubectl edit {resource.kind.lower()} {name}{where}",
        cancel=back(visit),
    )


async def _do(
    resource: Resource,
    place: Place,
    back: Callable[[Visit], str],
    visit: Visit,
    values: Mapping[str, str],
) -> Done | Checked:
    t, (namespace, name) = visit.t, place(visit)
    try:
        wanted = await asyncio.to_thread(_wanted, resource, namespace, name, values["manifest"])
        for is_last in (*(False,) * _TRIES, True):
            try:
                present = await _read(resource, place, visit)
                checked = await _try(resource, visit, wanted, present, values)
            except Conflict:  # written to between reading and writing
                if is_last:
                    raise
            else:
                return checked or Done(back(visit), t("{name} is saved.", name=name))
    except BadManifest as bad:
        raise Invalid(errors_of(t, bad)) from bad
    raise AssertionError("not reached")


async def _try(
    resource: Resource, visit: Visit, wanted: _Wanted, present: Obj, values: Mapping[str, str]
) -> Checked | None:
    """None: it is saved. Raises BadManifest, Conflict, KubeError."""
    if values["version"] != await _version(present):
        return await _overtaken(resource, visit, wanted, present)
    text = values["manifest"]
    if values["step"] != "save" or values["seen"] != _mark(text, values["version"]):
        return await _review(resource, visit, wanted, present, text)
    await _write(resource, visit, wanted, present, {})
    return None


async def _read(resource: Resource, place: Place, visit: Visit) -> Obj:
    namespace, name = place(visit)
    return await visit.kube.get(resource, name, namespace)


def _wanted(resource: Resource, namespace: str, name: str, text: str) -> _Wanted:
    """Raises BadManifest."""
    document = read_document(text)
    if isinstance(document, tuple):
        raise BadManifest(*(Complaint(each.text, line_of(each.mark)) for each in document))
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        raise BadManifest(Complaint("wanted an object with apiVersion, kind and metadata", 1))
    fixed: tuple[tuple[tuple[str, ...], str], ...] = (
        (("apiVersion",), resource.api_version),
        (("kind",), resource.kind),
        (("metadata", "name"), name),
        (("metadata", "namespace"), namespace),
    )
    for path, must_be in fixed:
        found = data["metadata"].get(path[1]) if len(path) > 1 else data.get(path[0])
        if (found or "") != must_be:
            words = f'{".".join(path)}: wanted "{must_be}", found "{found or ""}": it cannot change'
            raise BadManifest(Complaint(words, line_of(document.problem("", *path).mark)))
    return _Wanted(data, document)


async def _write(
    resource: Resource, visit: Visit, wanted: _Wanted, present: Obj, query: Mapping[str, str]
) -> Obj:
    """Raises BadManifest, Conflict, KubeError."""
    version = {"resourceVersion": present["metadata"]["resourceVersion"]}
    obj = {**wanted.obj, "metadata": {**wanted.obj["metadata"], **version}}
    try:
        return await visit.kube.update(resource, obj, query={**_STRICT, **query})
    except Refused as refused:
        if isinstance(refused, Conflict) or refused.code == 401:
            raise
        raise BadManifest(*complaints_of(resource.kind, wanted.document, refused)) from refused


async def _review(
    resource: Resource, visit: Visit, wanted: _Wanted, present: Obj, text: str
) -> Checked:
    """What would change, as the API server would write it."""
    t, version = visit.t, await _version(present)
    would_be = await _write(resource, visit, wanted, present, _DRY)
    lines = await asyncio.to_thread(_compared, present, would_be)
    if lines == ():
        return Checked(t("Nothing would change."), {"diff": (), "may_save": False})
    words = t("The API server would accept it. This would change:")
    if lines is None:
        words = t("The API server would accept it. It is too long to show what would change.")
    values = {"diff": lines, "may_save": True}
    return Checked(words, values, {"seen": _mark(text, version), "step": ""})


async def _overtaken(resource: Resource, visit: Visit, wanted: _Wanted, present: Obj) -> Checked:
    """Somebody else was first. Their version is the one to compare with from now on."""
    words = visit.t(
        "Somebody else has changed it since you opened it, so nothing is saved. Below are the"
        " differences between what it is now and your text: lines with - are theirs and would go."
        " Change your text if you want to keep them, then look at the changes again."
    )
    would_be = await _write(resource, visit, wanted, present, _DRY)
    lines = await asyncio.to_thread(_compared, present, would_be)
    values = {"diff": lines, "is_trouble": True, "may_save": False}
    return Checked(words, values, {"version": await _version(present), "seen": "", "step": ""})


def _compared(present: Obj, would_be: Obj) -> tuple[DiffLine, ...] | None:
    """None: they are too long."""
    try:
        return diff(editable_yaml(present), editable_yaml(would_be))
    except TooLong:
        return None


async def _version(obj: Obj) -> str:
    """Of what people edit. The resourceVersion changes with the status as well."""
    text = await asyncio.to_thread(editable_yaml, obj)
    return hashlib.sha256(text.encode()).hexdigest()


def _mark(text: str, version: str) -> str:
    """Of the text whose changes the visitor has seen: a text that was changed since is not it."""
    return hashlib.sha256(f"{version}\n{text}".encode()).hexdigest()


# Kinds whose pages are their own.
_POD, _NODE = edit(PODS), edit(NODES, of_node)
ACTIONS = (
    action_of(_POD, "pods/{namespace}/{name}", "pods"),
    action_of(_NODE, "nodes/{node}", "nodes"),
)


async def edit_button(visit: Visit, resource: Resource, namespace: str, name: str) -> RowAction:
    """For a page of a pod or a node."""
    lacks = await visit.lacks(*(_POD if resource is PODS else _NODE).rights(namespace))
    parts = (resource.plural, *filter(None, (namespace, name)), "edit")
    return RowAction(visit.t("Edit YAML"), visit.link(*parts), lacks, is_page=True)
