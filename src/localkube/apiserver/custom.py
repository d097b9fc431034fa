"""CustomKinds: what CRDs define, kept in step with the store.

A CRD adds a Kind per served version, with its schema; changing or deleting it changes or removes
them. Discovery and OpenAPI read the same Kinds, so a new kind is visible everywhere at once.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from weakref import WeakValueDictionary

import orjson

from kubeclient.objects import Obj, kept_json
from localkube.apiserver import status
from localkube.apiserver.kinds import Kind, Kinds, PrinterColumn, Subresource
from localkube.apiserver.schema.fast import is_clean
from localkube.apiserver.schema.node import Schema
from localkube.apiserver.schema.structural import CrdVersion, compile_crd_version, let_go

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_VERBS = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)
_SUBRESOURCE_VERBS = ("get", "patch", "update")


def _now(step: Callable[[], None]) -> None:
    step()


@dataclass(frozen=True, slots=True)
class _Document:
    """What is kept of the CRD's entry for a version."""

    schema: bytes  # JSON: parsed, a schema of 30,000 properties takes ten megabytes
    scale: Obj | None


class Prepared:
    """The compiled versions of a CRD that will be stored next, as long as its request holds it."""

    __slots__ = ("__weakref__", "versions")

    def __init__(self, versions: dict[str, CrdVersion]) -> None:
        self.versions = versions


class CustomKinds:
    def __init__(self, kinds: Kinds, aside: Callable[[Callable[[], None]], None] = _now) -> None:
        """`aside`: where what is gone is freed, which takes long where it was large."""
        self._kinds = kinds
        self._aside = aside
        self._versions: dict[Kind, CrdVersion] = {}
        self._documents: dict[Kind, _Document] = {}
        self._by_crd: dict[str, list[Kind]] = {}
        self._specs: dict[str, bytes] = {}  # digests of what is compiled, by CRD
        self._terminating: set[str] = set()  # CRDs
        self._prepared: WeakValueDictionary[bytes, Prepared] = WeakValueDictionary()

    def version(self, kind: Kind) -> CrdVersion:
        """As the CRD defines it now, which may have changed since the request began: a webhook may
        have kept it waiting. Raises ApiError if the version is gone."""
        found = self._versions.get(kind)
        if found is None:
            now = self._kinds.find(kind.group, kind.version, kind.plural)
            found = self._versions.get(now) if now is not None else None
        if found is None:
            raise status.no_such_resource()
        return found

    def refuse_create(self, kind: Kind) -> None:
        """Raises ApiError if the objects of the kind are being deleted, or were: a new one would
        stay for ever."""
        if kind.resource in self._terminating:
            text = "create not allowed while custom resource definition is terminating"
            details: Obj = {"group": kind.group, "kind": kind.plural}
            raise status.failure(405, "MethodNotAllowed", text, details=details)
        if kind.resource not in self._by_crd:
            raise status.no_such_resource()

    def schema(self, kind: Kind) -> Schema | None:
        """None for a kind that no CRD defines."""
        found = self._versions.get(kind)
        return found.schema if found is not None else None

    def document(self, kind: Kind) -> bytes:
        """The openAPIV3Schema as it was given, in JSON; empty where there is none."""
        document = self._documents.get(kind)
        return document.schema if document is not None else b""

    def scale_paths(self, kind: Kind) -> Obj | None:
        document = self._documents.get(kind)
        return document.scale if document is not None else None

    def prepare(self, crd: Obj) -> Prepared | None:
        """Compiles a large CRD that will be stored next, so that `replace` need not. May be called
        in another thread. To be held until it is stored."""
        spec = _digest(crd)
        if self._specs.get(crd["metadata"]["name"]) == spec:
            return None  # a change of its status or metadata
        served = [row["name"] for row in crd["spec"]["versions"] if row.get("served")]
        compiled = {name: compile_crd_version(crd, name) for name in served}
        for version in compiled.values():
            is_clean({}, version.schema)  # makes the fast check, too
        prepared = self._prepared[spec] = Prepared(compiled)
        return prepared

    def replace(self, name: str, crd: Obj | None) -> None:
        """The CRD of that name is now `crd`, or gone."""
        self._terminating.discard(name)
        if crd is not None and _is_terminating(crd):
            self._terminating.add(name)
        spec = b"" if crd is None else _digest(crd)
        if spec and self._specs.get(name) == spec:
            return
        self._remove(name)
        if crd is not None:
            prepared = self._prepared.get(spec)
            self._add(name, crd, prepared.versions if prepared is not None else {})
            self._specs[name] = spec

    def _remove(self, name: str) -> None:
        self._specs.pop(name, None)
        gone = []
        for kind in self._by_crd.pop(name, []):
            self._kinds.remove(kind)
            gone.append(self._versions.pop(kind))
            del self._documents[kind]
        if gone:
            self._aside(partial(let_go, gone))

    def _add(self, name: str, crd: Obj, compiled: dict[str, CrdVersion]) -> None:
        added = self._by_crd[name] = []
        for document in crd["spec"]["versions"]:
            if document.get("served"):
                kind = kind_of(crd, document)
                version = document["name"]
                self._versions[kind] = compiled.get(version) or compile_crd_version(crd, version)
                self._documents[kind] = _kept(document)
                self._kinds.add(kind)
                added.append(kind)


def _digest(crd: Obj) -> bytes:
    return hashlib.sha256(orjson.dumps(crd["spec"])).digest()


def _is_terminating(crd: Obj) -> bool:
    return any(
        condition["type"] == "Terminating" and condition["status"] == "True"
        for condition in (crd.get("status") or {}).get("conditions") or ()
    )


def _kept(document: Obj) -> _Document:
    schema = document.get("schema", {}).get("openAPIV3Schema")
    scale = document.get("subresources", {}).get("scale")
    return _Document(kept_json(schema) if schema else b"", scale)


def kind_of(crd: Obj, document: Obj) -> Kind:
    spec, names = crd["spec"], crd["spec"]["names"]
    storage = next(v["name"] for v in spec["versions"] if v.get("storage"))
    subresources = document.get("subresources") or {}
    group, version = spec["group"], document["name"]
    rows = []
    if "status" in subresources:
        rows.append(Subresource("status", names["kind"], group, version, _SUBRESOURCE_VERBS))
    if "scale" in subresources:
        rows.append(Subresource("scale", "Scale", "autoscaling", "v1", _SUBRESOURCE_VERBS))
    return Kind(
        group=group,
        version=version,
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        verbs=_VERBS,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(rows),
        storage_version=storage,
        has_status="status" in subresources,
        has_generation=True,
        custom=True,
        one_of_many=len(spec["versions"]) > 1,
        selectable=tuple(
            field["jsonPath"].lstrip(".") for field in document.get("selectableFields") or ()
        ),
        printer_columns=tuple(
            _column(column) for column in document.get("additionalPrinterColumns") or ()
        ),
    )


def _column(column: Obj) -> PrinterColumn:
    return PrinterColumn(
        name=column["name"],
        type=column["type"],
        json_path=column["jsonPath"],
        format=column.get("format", ""),
        description=column.get("description", ""),
        priority=column.get("priority", 0),
    )


def accepted(crd: Obj, stamp: str) -> Obj:
    """A CRD's status once its names are taken and it is served."""
    names = dict(crd["spec"]["names"])
    stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
    return {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": stamp,
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": stamp,
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "acceptedNames": names,
        "storedVersions": stored,
    }
