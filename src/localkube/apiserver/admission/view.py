"""StoreView: the store as admission reads it, each version of an object parsed once."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import ClusterView

_KEPT = 4096


class ViewedRecord(Protocol):
    """A stored object. Records are never changed: another version is another record."""

    def obj(self) -> Obj: ...


class Records(Protocol):
    def get(self, resource: str, namespace: str, name: str) -> ViewedRecord | None: ...

    def records(self, resource: str, namespace: str | None = None) -> Sequence[ViewedRecord]:
        """The same sequence until one of them changes."""


class StoreView:
    def __init__(self, store: Records) -> None:
        self._store = store
        self._objects: dict[tuple[str, str, str], tuple[ViewedRecord, Obj]] = {}
        self._lists: dict[tuple[str, str | None], tuple[Sequence[ViewedRecord], list[Obj]]] = {}

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        record = self._store.get(resource, namespace, name)
        if record is None:
            return None
        key = (resource, namespace, name)
        kept = self._objects.get(key)
        if kept is not None and kept[0] is record:
            return kept[1]
        if len(self._objects) >= _KEPT:
            self._objects.clear()
        parsed = record.obj()
        self._objects[key] = record, parsed
        return parsed

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Obj]:
        records = self._store.records(resource, namespace)
        if not records:
            return ()
        key = (resource, namespace)
        kept = self._lists.get(key)
        if kept is not None and kept[0] is records:
            return kept[1]
        if len(self._lists) >= _KEPT:
            self._lists.clear()
        parsed = [record.obj() for record in records]
        self._lists[key] = records, parsed
        return parsed


class ViewFromThread:
    """The cluster as long work sees it: each question is answered on the event loop."""

    def __init__(self, cluster: ClusterView, on_loop: Callable[[Callable[[], Any]], Any]) -> None:
        self._cluster = cluster
        self._on_loop = on_loop

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        found: Obj | None = self._on_loop(lambda: self._cluster.get(resource, namespace, name))
        return found

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Obj]:
        found: Sequence[Obj] = self._on_loop(lambda: self._cluster.list(resource, namespace))
        return found
