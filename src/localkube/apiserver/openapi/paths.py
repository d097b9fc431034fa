"""The paths in OpenAPI documents.

kubectl looks for a kind among the operations (x-kubernetes-group-version-kind), and for the query
parameter fieldValidation of its patch before it asks for server-side validation.
"""

from collections.abc import Iterator

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind, Subresource
from localkube.apiserver.openapi.schemas import (
    DELETE_OPTIONS,
    PATCH,
    STATUS,
    V3_PREFIX,
    definition_name,
)
from localkube.apiserver.schema.load import definition_names

_ON_MANY = {"list": ("get", "list"), "create": ("post", "post")}
_ON_MANY |= {"deletecollection": ("delete", "deletecollection")}
_ON_ONE = {verb: (verb, verb) for verb in ("get", "patch", "delete")} | {"update": ("put", "put")}
_SUB = _ON_ONE | {"create": ("post", "connect")}
_JSON = "application/json"
# kubectl takes the best of those that it finds, so a custom kind must not offer the last one.
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_OPTIONS = {
    "dryRun": "All: do everything but store the result.",
    "fieldManager": "Who makes the change, for the object's managedFields.",
    "fieldValidation": "What to do about unknown and repeated fields: Ignore, Warn or Strict.",
}
_FORCE = {"force": "Take fields over from other managers (server-side apply)."}
_LIST_OPTIONS = {
    "continue": "Where to go on: from the answer to the last list.",
    "fieldSelector": "Only objects with these field values.",
    "labelSelector": "Only objects with these labels.",
    "limit": "At most so many objects.",
    "resourceVersion": "At least as new as this, or the start of a watch.",
    "resourceVersionMatch": "How resourceVersion is meant: Exact or NotOlderThan.",
    "timeoutSeconds": "End the watch after so many seconds.",
    "watch": "Send changes as they happen.",
}
_QUERIES = {
    "get": {},
    "list": _LIST_OPTIONS,
    "deletecollection": _LIST_OPTIONS | {"dryRun": _OPTIONS["dryRun"]},
    "delete": {
        "dryRun": _OPTIONS["dryRun"],
        "gracePeriodSeconds": "How long the object may take to end.",
        "propagationPolicy": "What happens to dependents: Background, Foreground or Orphan.",
    },
    "post": _OPTIONS,
    "connect": _OPTIONS,
    "put": _OPTIONS,
    "patch": _OPTIONS | _FORCE,
}


def of_kind(kind: Kind) -> Iterator[tuple[str, Obj]]:
    """Every path of the kind, with its operations."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    many = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    many = f"{many}/{kind.plural}"
    where = ["namespace"] if kind.namespaced else []
    name = definition_name(kind)
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    patches = _PATCH_TYPES[:-1] if kind.custom else _PATCH_TYPES
    if kind.namespaced and "list" in kind.verbs:
        yield f"{root}/{kind.plural}", {"get": _operation("list", name, gvk, patches)}
    for path, verbs, variables in (
        (many, _ON_MANY, where),
        (f"{many}/{{name}}", _ON_ONE, [*where, "name"]),
    ):
        operations = _operations(kind.verbs, verbs, name, gvk, patches)
        if operations:
            yield path, operations | _variables(variables)
    for sub in kind.subresources:
        operations = _operations(sub.verbs, _SUB, _sub_name(kind, sub), _gvk(sub), patches)
        yield f"{many}/{{name}}/{sub.name}", operations | _variables([*where, "name"])


def _gvk(sub: Subresource) -> Obj:
    return {"group": sub.group, "version": sub.version, "kind": sub.kind}


def _sub_name(kind: Kind, sub: Subresource) -> str:
    if sub.kind == kind.kind:
        return definition_name(kind)
    return definition_names().get((sub.group, sub.version, sub.kind), "")


def _operations(
    verbs: tuple[str, ...],
    known: dict[str, tuple[str, str]],
    name: str,
    gvk: Obj,
    patches: tuple[str, ...],
) -> Obj:
    chosen = [known[verb] for verb in verbs if verb in known]
    return {method: _operation(action, name, gvk, patches) for method, action in chosen}


def _operation(action: str, name: str, gvk: Obj, patches: tuple[str, ...]) -> Obj:
    group = gvk["group"].partition(".")[0] or "core"
    operation: Obj = {
        "tags": [f"{group}_{gvk['version']}"],
        "description": f"{action} {gvk['kind']}",
        "parameters": [
            {"name": key, "in": "query", "description": text, "schema": {"type": "string"}}
            for key, text in _QUERIES[action].items()
        ],
        "responses": {
            "200": {"description": "OK", **_content((_JSON,), _answered(action, name))},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }
    if action == "patch":
        operation["requestBody"] = _content(patches, PATCH)
    elif action in ("delete", "deletecollection"):
        operation["requestBody"] = _content(("*/*",), DELETE_OPTIONS)
    elif action in ("post", "put", "connect"):
        operation["requestBody"] = _content(("*/*",), name)
    return operation


def _answered(action: str, name: str) -> str:
    if action == "list":
        return f"{name}List" if name else ""
    return STATUS if action in ("delete", "deletecollection") else name


def _content(media: tuple[str, ...], name: str) -> Obj:
    schema = {"$ref": V3_PREFIX + name} if name else {"type": "string"}
    return {"content": {one: {"schema": schema} for one in media}}


def _variables(names: list[str]) -> Obj:
    return (
        {
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in names
            ]
        }
        if names
        else {}
    )
