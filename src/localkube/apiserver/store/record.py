"""Record: one stored object, as bytes plus the few facts that lists and watches filter on.

Bytes and untracked structs keep Python's garbage collector out of the way: 60,000 pods as dicts
cost pauses of a second, as records a few milliseconds (docs/decisions/0001).
"""

from functools import cache
from typing import Any

import msgspec
import orjson

from kubeclient.objects import Obj, kept_json
from localkube.apiserver.allocation import apart

_LARGE = 256 * 1024  # megabytes once it is parsed


class Record(msgspec.Struct, frozen=True, gc=False):
    id: int  # the row on disk
    resource: str  # "pods", "deployments.apps"
    namespace: str  # "" for cluster-scoped kinds
    name: str
    uid: str
    rv: int
    labels: dict[str, str]
    fields: tuple[str, ...]  # values of the kind's selectable fields, in their order
    body: bytes  # JSON in the storage version, with apiVersion, kind and resourceVersion

    def obj(self) -> Obj:
        """A fresh copy that the caller may change."""
        if len(self.body) > _LARGE:
            with apart():
                return _parsed(self.body)
        return _parsed(self.body)


def _parsed(body: bytes) -> Obj:
    parsed: Obj = orjson.loads(body)
    return parsed


def record_of(obj: Obj, *, row: int, resource: str, rv: int, selectable: tuple[str, ...]) -> Record:
    """Stamps the resource version into the object and freezes it."""
    metadata = obj["metadata"]
    metadata["resourceVersion"] = str(rv)
    return Record(
        id=row,
        resource=resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        rv=rv,
        labels=metadata.get("labels") or {},
        fields=field_values(obj, selectable) if selectable else (),
        body=kept_json(obj),
    )


# What an absent field counts as in a field selector, where that is not the empty string.
_ABSENT = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.successful": "0",
    "status.replicas": "0",
}


def field_value(obj: Obj, path: str) -> str:
    """The value of a selectable field as text: `spec.nodeName`, `involvedObject.kind`."""
    return field_values(obj, (path,))[0]


def field_values(obj: Obj, paths: tuple[str, ...]) -> tuple[str, ...]:
    values: list[str] = []
    for parents, names in _grouped(paths):
        holder = obj
        for parent in parents:
            inner = holder.get(parent)
            holder = inner if type(inner) is dict else _EMPTY
        for name, absent in names:
            value = holder.get(name)
            if type(value) is not str:
                value = absent if value is None else _text(value)
            values.append(value)
    return tuple(values)


_EMPTY: Obj = {}


@cache
def _grouped(paths: tuple[str, ...]) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Neighbours with the same parents, which are then looked up once: (parents, [(name, what an
    absent one counts as)])."""
    groups: list[tuple[list[str], list[tuple[str, str]]]] = []
    for path in paths:
        *parents, name = path.split(".")
        if not groups or groups[-1][0] != parents:
            groups.append((parents, []))
        groups[-1][1].append((name, _ABSENT.get(path, "")))
    return groups


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
