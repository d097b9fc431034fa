"""A cluster of a few objects, and writes to it, for tests of admission."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes, Operation
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.kinds import Kind, builtin_kinds
from localkube.apiserver.request import User
from localkube.apiserver.status import ApiError

KINDS = {kind.resource: kind for kind in reversed(builtin_kinds())}
ADMIN = User(name="admin", groups=("system:masters",))


@dataclass(frozen=True)
class Record:
    resource: str
    thing: Obj

    @property
    def namespace(self) -> str:
        return str(self.thing["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        return str(self.thing["metadata"]["name"])

    def obj(self) -> Obj:
        return self.thing


@dataclass(frozen=True)
class Event:
    type: str
    record: Record
    previous: Record | None = None


@dataclass
class SmallCluster:
    """Both what plugins look things up in and, with its listeners, what a ledger listens to."""

    objects: dict[tuple[str, str, str], Record] = field(default_factory=dict)
    listeners: list[Callable[[Event], None]] = field(default_factory=list)

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        record = self.objects.get((resource, namespace, name))
        return record.thing if record else None

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Obj]:
        return [record.thing for record in self.records(resource, namespace)]

    async def listed(self, resource: str, namespace: str | None = None) -> Sequence[Obj]:
        return self.list(resource, namespace)

    async def selected(
        self, resource: str, namespace: str | None, wanted: Callable[[Mapping[str, str]], bool]
    ) -> AsyncIterator[Obj]:
        for each in self.list(resource, namespace):
            if wanted(each["metadata"].get("labels") or {}):
                yield each

    def records(self, resource: str, namespace: str | None = None) -> Sequence[Record]:
        return [
            self.objects[key]
            for key in sorted(self.objects)
            if key[0] == resource and namespace in (None, key[1])
        ]

    def resources_in(self, namespace: str) -> Iterator[str]:
        yield from sorted({key[0] for key in self.objects if key[1] == namespace})

    def on_change(self, listener: Callable[[Event], None]) -> None:
        self.listeners.append(listener)

    def put(self, resource: str, name: str, namespace: str = "", **parts: Any) -> Obj:
        metadata = {"name": name, "uid": f"uid-of-{name}"} | parts.pop("metadata", {})
        if namespace:
            metadata["namespace"] = namespace
        return self.write(resource, {"metadata": metadata} | parts)

    def write(self, resource: str, thing: Obj) -> Obj:
        record = Record(resource, thing)
        key = (resource, record.namespace, record.name)
        previous = self.objects.get(key)
        self.objects[key] = record
        self._tell(Event("MODIFIED" if previous else "ADDED", record, previous))
        return thing

    def remove(self, resource: str, name: str, namespace: str = "") -> None:
        record = self.objects.pop((resource, namespace, name))
        self._tell(Event("DELETED", record, record))

    def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)


def a_cluster() -> SmallCluster:
    """With one namespace and its service account."""
    cluster = SmallCluster()
    cluster.put("namespaces", "ns", status={"phase": "Active"})
    cluster.put("serviceaccounts", "default", "ns")
    return cluster


def write(
    resource: str,
    obj: Obj | None,
    operation: Operation = Operation.CREATE,
    *,
    old: Obj | None = None,
    **more: Any,
) -> Attributes:
    kind: Kind = KINDS[resource]
    metadata = (obj or old or {"metadata": {}})["metadata"]
    return Attributes(
        **{
            "operation": operation,
            "kind": kind,
            "subresource": "",
            "namespace": "ns" if kind.namespaced else "",
            "name": metadata.get("name", ""),
            "user": ADMIN,
            "obj": obj,
            "old": old,
            "dry_run": False,
            "options": {},
            "warnings": [],
        }
        | more
    )


def pod(name: str = "p", *containers: Obj, metadata: Obj | None = None, **spec: Any) -> Obj:
    """With its defaults, as admission gets it."""
    thing = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns"} | (metadata or {}),
        "spec": {"containers": list(containers) or [container()]} | spec,
    }
    apply_defaults(thing, KINDS["pods"])
    return thing


def container(name: str = "c", **more: Any) -> Obj:
    return {"name": name, "image": "busybox:1.36"} | more


def refused(code: int = 403) -> "pytest.RaisesExc[ApiError]":
    return pytest.raises(ApiError, check=lambda error: error.code == code)
