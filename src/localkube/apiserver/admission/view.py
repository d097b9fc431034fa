"""StoreView: the store as admission reads it, each version of an object parsed once."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from kubeclient.objects import Obj
from kubeclient.turns import Turns
from localkube.apiserver.admission.attributes import ClusterView

_KEPT = 4096


class ViewedRecord(Protocol):
    """A stored object. Records are never changed: another version is another record."""

    @property
    def labels(self) -> Mapping[str, str]: ...

    def obj(self) -> Obj: ...


class Records(Protocol):
    def get(self, resource: str, namespace: str, name: str) -> ViewedRecord | None: ...

    def records(self, resource: str, namespace: str | None = None) -> Sequence[ViewedRecord]:
        """The same sequence until one of them changes."""


class StoreView:
    def __init__(self, store: Records) -> None:
        self._store = store
        self._objects: dict[tuple[str, str, str], tuple[ViewedRecord, Obj]] = {}
        self._lists: dict[tuple[str, str | None], tuple[Sequence[ViewedRecord], Sequence[Obj]]] = {}

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
        kept = self._kept(resource, namespace, records)
        if kept is not None:
            return kept
        known = self._known(resource, namespace)
        parsed = [known.get(id(record)) or record.obj() for record in records]
        return self._keep(resource, namespace, records, parsed)

    async def listed(self, resource: str, namespace: str | None = None) -> Sequence[Obj]:
        records = self._store.records(resource, namespace)
        kept = self._kept(resource, namespace, records)
        if kept is not None:
            return kept
        known, parsed, turns = self._known(resource, namespace), [], Turns()
        for record in records:
            await turns.next()
            parsed.append(known.get(id(record)) or record.obj())
        return self._keep(resource, namespace, records, parsed)

    async def selected(
        self, resource: str, namespace: str | None, wanted: Callable[[Mapping[str, str]], bool]
    ) -> AsyncIterator[Obj]:
        turns = Turns()
        for record in self._store.records(resource, namespace):
            await turns.next()
            if wanted(record.labels):
                yield record.obj()

    def _kept(
        self, resource: str, namespace: str | None, records: Sequence[ViewedRecord]
    ) -> Sequence[Obj] | None:
        """None: they have to be parsed."""
        if not records:
            return ()
        kept = self._lists.get((resource, namespace))
        return kept[1] if kept is not None and kept[0] is records else None

    def _known(self, resource: str, namespace: str | None) -> dict[int, Obj]:
        """Of the list as it was: by the identity of the records, which stay alive with it."""
        kept = self._lists.get((resource, namespace))
        if kept is None:
            return {}
        return {id(record): obj for record, obj in zip(*kept, strict=True)}

    def _keep(
        self,
        resource: str,
        namespace: str | None,
        records: Sequence[ViewedRecord],
        parsed: Sequence[Obj],
    ) -> Sequence[Obj]:
        if len(self._lists) >= _KEPT:
            self._lists.clear()
        self._lists[resource, namespace] = records, parsed
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
