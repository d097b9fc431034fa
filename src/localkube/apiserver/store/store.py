"""Store: every object by (resource, namespace, name), and one resourceVersion that only grows.

Only the event loop's thread reads and writes the store, and its methods for reading and writing
do not await: a handler that checks an object and then writes it, without an await in between, does
so atomically.

The path of one write:

    create, replace, remove    memory has the new state at once, and a row is queued for the disk
    Disk (its own thread)      commits all queued rows in one transaction: group commit
    _committed                 watchers get the events, and `durable` returns to the writers

A client is answered only after its row is committed, so that an answer of 200 survives kill -9 and
a power cut. Watchers get an event only after the commit, and readers wait by `settled` until what
they are about to show is committed. This is why a refused write can be undone: if the disk is full,
memory goes back to what the disk holds, the writers get NotWritten, and no client has seen a state
that was never stored.
"""

import asyncio
import gc
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import orjson

from kubeclient.objects import Obj
from localkube.apiserver.store.disk import Change, Disk
from localkube.apiserver.store.record import Record, record_of
from localkube.apiserver.store.watch_log import (
    ADDED,
    DELETED,
    MODIFIED,
    Event,
    WatchLog,
)

log = logging.getLogger(__name__)

# After a crash, the disk may know fewer versions than were given out: those of writes that were in
# memory and not committed. None of them must ever name another change.
_RV_GAP_AFTER_START = 10_000

# kinds.py lists spec.nodeName first among the selectable fields of pods.
_NODE_NAME = 0

Selectable = Callable[[str], tuple[str, ...]]  # resource -> its selectable fields


# What etcd takes, so that what fits here fits on a real cluster.
OBJECT_BYTES = 3 * 512 * 1024


class TooLarge(Exception):
    """The object has more than OBJECT_BYTES. Nothing was changed."""


class NotWritten(Exception):
    """The write did not happen: the disk refused it. The store is as it was before."""


class _Change(msgspec.Struct, gc=False):
    old: Record | None
    new: Record | None  # None: deleted
    event: Event


class Store:
    def __init__(self, path: Path, selectable: Selectable) -> None:
        self.selectable = selectable
        self._objects: dict[str, dict[str, dict[str, Record]]] = defaultdict(dict)
        # Sorted once per change of membership, not per change of an object.
        self._order: dict[tuple[str, str | None], list[tuple[dict[str, Record], str]]] = {}
        self._lists: dict[tuple[str, str | None], list[Record]] = {}  # for who asks again
        self._by_node: dict[str, dict[tuple[str, str], Record]] = defaultdict(dict)
        self._logs: dict[str, WatchLog] = {}
        self._unwritten: deque[_Change] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._listeners: list[Callable[[Event], None]] = []
        self._disk = Disk(path)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake_planned = False
        self._next_id = 1
        self.rv = 0  # the last one given out
        self._count = 0
        self._load()
        self.published_rv = self.rv  # watchers have heard of everything up to here
        self._start_rv = self.rv

    @property
    def problem(self) -> str:
        """Why the last write did not reach the disk; empty while all is well."""
        return self._disk.problem

    # -- reading ---------------------------------------------------------------------------

    def get(self, resource: str, namespace: str, name: str) -> Record | None:
        names = self._objects[resource].get(namespace)
        return names.get(name) if names else None

    def records(self, resource: str, namespace: str | None = None) -> Sequence[Record]:
        """In order of namespace and name; the same sequence until one of them changes."""
        namespaces = self._objects[resource]
        if not (namespaces if namespace is None else namespaces.get(namespace)):
            return ()
        key = (resource, namespace)
        found = self._lists.get(key)
        if found is None:
            order = self._order.get(key)
            if order is None:
                chosen = sorted(namespaces) if namespace is None else [namespace]
                groups = [namespaces[each] for each in chosen]
                order = [(names, name) for names in groups for name in sorted(names)]
                self._order[key] = order
            found = self._lists[key] = [names[name] for names, name in order]
        return found

    def records_at(self, resource: str, namespace: str | None, rv: int) -> list[Record] | None:
        """As they were at that version, in the same order; None when too much happened since."""
        now = {(r.namespace, r.name): r for r in self.records(resource, namespace)}
        undone = self.log(resource).since(rv)
        if undone is None:
            return None
        # The log has committed events only, and memory is ahead of the log by these.
        unwritten = (c.event for c in self._unwritten if c.event.record.resource == resource)
        # The newest first, because each event knows the state right before it.
        for event in reversed([*undone, *unwritten]):
            record = event.record
            if record.rv <= rv or namespace not in (None, record.namespace):
                continue
            if event.previous is None:
                now.pop((record.namespace, record.name), None)
            else:
                now[record.namespace, record.name] = event.previous
        return [now[key] for key in sorted(now)]

    def pods_on(self, node: str) -> list[Record]:
        """Pods by spec.nodeName, in order: kubelets and `kubectl describe node` ask often."""
        found = self._by_node.get(node, {})
        return [found[key] for key in sorted(found)]

    def counts(self) -> dict[str, int]:
        """How many objects of each resource."""
        return {
            resource: sum(len(names) for names in namespaces.values())
            for resource, namespaces in self._objects.items()
        }

    def resources_in(self, namespace: str) -> Iterator[str]:
        """Which resources have objects there."""
        return (r for r, namespaces in self._objects.items() if namespaces.get(namespace))

    def log(self, resource: str) -> WatchLog:
        found = self._logs.get(resource)
        if found is None:
            # The history is not on disk: a watch from before this start has to list again.
            found = self._logs[resource] = WatchLog(self._start_rv)
        return found

    def forget_stale(self, now_s: float) -> int:
        """Large histories of long ago; how many bytes they had."""
        return sum(log.forget_stale(now_s) for log in self._logs.values())

    def on_change(self, listener: Callable[[Event], None]) -> None:
        """Called at once with every change in memory, before it is on disk. An exception is logged:
        the change has been made, so its writer must not be told otherwise."""
        self._listeners.append(listener)

    @property
    def version(self) -> int:
        """Of the newest change: what a list of the present says of itself."""
        return self._unwritten[-1].event.record.rv if self._unwritten else self.published_rv

    async def settled(self, version: int) -> None:
        """Returns when every change up to there is on disk; raises NotWritten when one never will
        be, and what was read must be read again."""
        if not self._unwritten or version < self._unwritten[0].event.record.rv:
            return
        assert self._loop is not None
        future = self._loop.create_future()
        # In order of arrival, not of versions. A reader of an older record may thereby wait one
        # commit too long, which does no harm; nobody is woken too early.
        self._waiting.append((version, future))
        await future

    # -- writing ---------------------------------------------------------------------------

    def create(self, resource: str, obj: Obj) -> Record:
        record = self._sized(self._record(resource, obj, row=self._next_id))
        self._next_id += 1
        self._apply(None, record, Event(ADDED, record, None))
        return record

    def replace(self, old: Record, obj: Obj) -> Record:
        record = self._sized(self._record(old.resource, obj, row=old.id))
        self._apply(old, record, Event(MODIFIED, record, old))
        return record

    def remove(self, old: Record, last: Obj | None = None) -> Record:
        """Deletes; returns the last state under the version of the deletion."""
        # No limit on the size: the last state is sent but not stored, and a deletion must not fail
        # by it.
        record = self._record(old.resource, last or old.obj(), row=old.id)
        self._apply(old, None, Event(DELETED, record, old))
        return record

    async def durable(self, record: Record) -> None:
        """Returns when `record`'s change is on disk; raises NotWritten when it never will be."""
        await self.settled(record.rv)

    def start(self) -> None:
        """Begins writing. To be called on the event loop, once."""
        loop = self._loop = asyncio.get_running_loop()

        def committed(count: int) -> None:
            loop.call_soon_threadsafe(self._committed, count)

        def failed(error: Exception) -> None:
            loop.call_soon_threadsafe(self._failed, error)

        self._disk.start(committed, failed)

    def close(self) -> None:
        self._disk.close()

    # -- inside ----------------------------------------------------------------------------

    def _sized(self, record: Record) -> Record:
        if len(record.body) > OBJECT_BYTES:
            raise TooLarge
        return record

    def _record(self, resource: str, obj: Obj, *, row: int) -> Record:
        # Used up even if the object is then refused as too large: gaps between versions are
        # allowed, using one version twice is not.
        self.rv += 1
        return record_of(
            obj, row=row, resource=resource, rv=self.rv, selectable=self.selectable(resource)
        )

    def _apply(self, old: Record | None, new: Record | None, event: Event) -> None:
        # First, because the row for the disk carries the number of objects after the change.
        self._swap(old, new)
        self._unwritten.append(_Change(old, new, event))
        written = event.record
        body = new.body if new else None
        self._disk.append(Change(written.id, written.resource, written.rv, body, self._count))
        if self._loop is not None and not self._wake_planned:
            # Not at once: the loop first runs the other handlers that are ready, and their writes
            # join this batch. One fsync then serves all of them.
            self._wake_planned = True
            self._loop.call_soon(self._wake_disk)
        self._tell(event)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                record = event.record
                where = f"{record.resource} {record.namespace}/{record.name}"
                log.exception("object not understood", extra={"object": where})

    def _wake_disk(self) -> None:
        self._wake_planned = False
        self._disk.wake()

    def _swap(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        assert record is not None
        namespaces = self._objects[record.resource]
        if new is not None:
            namespaces.setdefault(new.namespace, {})[new.name] = new
        else:
            names = namespaces[record.namespace]
            del names[record.name]
            if not names:
                del namespaces[record.namespace]
        everywhere, here = (record.resource, None), (record.resource, record.namespace)
        self._lists.pop(everywhere, None)
        self._lists.pop(here, None)
        if old is None or new is None:
            self._count += 1 if old is None else -1
            self._order.pop(everywhere, None)
            self._order.pop(here, None)
        if record.resource == "pods":
            self._index_pod(old, new)

    def _index_pod(self, old: Record | None, new: Record | None) -> None:
        if old is not None:
            # Under the node of the old record: a Binding changes the node.
            on_node = self._by_node[old.fields[_NODE_NAME]]
            del on_node[old.namespace, old.name]
            if not on_node:
                del self._by_node[old.fields[_NODE_NAME]]
        if new is not None:
            self._by_node[new.fields[_NODE_NAME]][new.namespace, new.name] = new

    def _committed(self, count: int) -> None:
        """The `count` oldest changes are on disk.

        Events are published before the writers wake up: a client that has the answer to its write
        and then starts a watch at the version of that answer must not miss an event.
        """
        for _ in range(count):
            event = self._unwritten.popleft().event
            self.log(event.record.resource).publish(event)
            self.published_rv = event.record.rv
        while self._waiting and self._waiting[0][0] <= self.published_rv:
            _, future = self._waiting.popleft()
            # Done already if the request was cancelled because its client has left.
            if not future.done():
                future.set_result(None)

    def _failed(self, error: Exception) -> None:
        """None of the queued changes will be written: undo them.

        The newest is undone first, because each change remembers the state right before it. The
        listeners (quota ledger, authorizer, service addresses) followed memory, so that they get
        the way back as events, too. The versions are lost: reusing one could give two states of an
        object the same resourceVersion.
        """
        # Changes that came in after the failed batch are undone as well: they were made from states
        # that no longer exist. Earlier commits were reported first: call_soon_threadsafe keeps the
        # order.
        undone = len(self._unwritten)
        while self._unwritten:
            change = self._unwritten.pop()
            self._swap(change.new, change.old)
            back = change.old or change.event.record
            kind = MODIFIED if change.old else DELETED
            self._tell(Event(kind, back, change.new))
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(NotWritten(str(error)))
        log.error("store went back to what the disk holds", extra={"changes": undone})
        # Last: the writer thread may go on only when memory equals the disk again.
        self._disk.discard()

    def _load(self) -> None:
        gc.disable()  # half a million short-lived dicts otherwise make it walk everything, often
        try:
            for row, resource, rv, value in self._disk.load():
                obj = orjson.loads(value)
                record = record_of(
                    obj, row=row, resource=resource, rv=rv, selectable=self.selectable(resource)
                )
                self._swap(None, record)
                self._next_id = max(self._next_id, row + 1)
        finally:
            gc.enable()
        last = self._disk.last_rv()
        # Never 0: to clients, resourceVersion "0" means "any version".
        self.rv = last + _RV_GAP_AFTER_START if last else 1
