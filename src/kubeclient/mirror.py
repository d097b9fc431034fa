"""Mirror: an up-to-date local copy of one resource, with indexes and change callbacks.

It lists the resource, then watches from the resourceVersion of the list. When a watch ends, the
next one starts at the last version seen, so nothing is missed. When the server has forgotten that
version (410 Expired), the mirror lists again and reports the differences to its copy as changes.
Changes in between that cancel out are lost then: callbacks must depend on the state they are told,
not on the number of calls. An object that was deleted and created again under the same name is
reported as one change with two different uids.

Callbacks run on the event loop, between awaits, in the order of resourceVersions. An exception of
a callback or of an index concerns one object: it is logged and told (mirror_faults.py), and the
mirror goes on. An object whose index fails is kept, and is not in that index.

Objects are stored as bytes and parsed when they are read: a hundred thousand parsed pods would keep
the garbage collector busy for seconds. So every reader gets an object of its own.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import orjson

from kubeclient.client import Kube, Query
from kubeclient.errors import Expired, KubeError, NoAnswer, Refused
from kubeclient.mirror_faults import Broke, Faults, unheard
from kubeclient.objects import Obj, kept_json
from kubeclient.resources import Resource
from kubeclient.turns import Turns

log = logging.getLogger(__name__)

Key = tuple[str, str]  # namespace, name
Changed = Callable[[Obj | None, Obj | None], None]  # old (None: new object), new (None: deleted)
IndexKeys = Callable[[Obj], Iterable[str]]

_PAUSE_AFTER_FAILURE_S = 1.0
_LONGEST_PAUSE_S = 30.0
_SOON_S = 5.0  # a watch without an event that ends before this has told nothing
_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_MAX_EVENT_BYTES = 16 * 1024**2  # ten times the limit of an object


def key_of(obj: Obj) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


def _event(line: bytes, part: Any) -> Obj:
    try:
        if part is None:
            event: Obj = orjson.loads(line)
            return event
        raw = msgspec.json.decode(line, type=_Line)
        if raw.type not in _CHANGES:
            return {"type": raw.type, "object": orjson.loads(bytes(raw.object))}
        obj = msgspec.json.decode(raw.object, type=part)
        return {"type": raw.type, "object": msgspec.to_builtins(obj)}
    except (orjson.JSONDecodeError, msgspec.DecodeError) as error:
        raise NoAnswer(f"an event is not JSON: {error}") from error


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


class Mirror:
    def __init__(  # noqa: PLR0913 - each says what is mirrored, and most need none of them
        self,
        kube: Kube,
        resource: Resource,
        *,
        namespace: str = "",
        query: Query | None = None,
        metadata_only: bool = False,
        part: Any = None,
        broke: Broke = unheard,
    ) -> None:
        """`namespace`: only its objects, for clients that may see no others. `part`: a
        msgspec.Struct with the fields that are read of each object, among them what names it; the
        rest is not even parsed.
        `broke` is told of objects that an index, or a callback without its own, fails with."""
        self.resource = resource
        self._namespace = namespace
        self._kube = kube
        self._query = dict(query or {})
        self._metadata_only = metadata_only
        self._part = part
        self._objects: dict[Key, bytes] = {}
        self._broke = broke
        self._faults = Faults(resource)
        self._callbacks: list[tuple[str, Changed, Broke]] = []
        self._index_keys: dict[str, IndexKeys] = {}
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {}
        self._synced = asyncio.Event()
        self._version = ""

    def get(self, name: str, namespace: str = "") -> Obj | None:
        raw = self._objects.get((namespace, name))
        return None if raw is None else orjson.loads(raw)

    def __iter__(self) -> Iterator[Obj]:
        # A copy: a reader may await between two objects, and the watch goes on meanwhile.
        return (orjson.loads(raw) for raw in list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def version(self) -> int:
        """Every change up to this resourceVersion has been seen; 0: nothing yet."""
        return int(self._version or 0)

    def by(self, index: str, value: str) -> list[Obj]:
        return [orjson.loads(self._objects[key]) for key in self._indexes[index].get(value, ())]

    def has(self, index: str, value: str) -> bool:
        return value in self._indexes[index]

    def each(self, index: str, value: str) -> Iterator[Obj]:
        """As `by`, but read one by one: for a loop that lets others go first (`Turns`). What is
        deleted meanwhile is left out."""
        for key in list(self._indexes[index].get(value, ())):
            raw = self._objects.get(key)
            if raw is not None:
                yield orjson.loads(raw)

    def add_index(self, name: str, keys: IndexKeys) -> None:
        """At any time: objects that are known already are indexed too."""
        if name in self._index_keys:
            return
        self._index_keys[name] = keys
        self._indexes[name] = defaultdict(dict)
        for obj in self:
            self._index(name, keys, obj)

    def on_change(self, callback: Changed, broke: Broke | None = None) -> None:
        """Called with every change from now on, and at once with the objects that are known.
        `broke`: who is told, in place of the mirror's own, of objects that the callback fails
        with."""
        told = self._broke if broke is None else broke
        entry = (f"callback {len(self._callbacks)}", callback, told)
        self._callbacks.append(entry)
        for obj in self:
            self._call(key_of(obj), entry, None, obj)

    def tell_again(self, name: str, namespace: str = "") -> None:
        """Calls all callbacks with the object as it is, for one that failed for another reason
        than the object."""
        obj = self.get(name, namespace)
        if obj is not None:
            for entry in list(self._callbacks):
                self._call((namespace, name), entry, obj, obj)

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled."""
        clock, idle = asyncio.get_running_loop().time, 0
        while True:
            began_s, version = clock(), ""
            try:
                if not self._version:
                    await self._relist()
                version = self._version
                await self._follow()
            except Expired:  # 410: this version is compacted. List again, at once.
                self._version = ""
            # The version stays: the next watch continues there, without a new list.
            except KubeError as error:
                log.warning(
                    "watch failed, trying again",
                    extra={"resource": self.resource.plural, "error": str(error)},
                )
                await _pause(_PAUSE_AFTER_FAILURE_S)
                continue
            # A server or proxy may end every watch at once, or call every version too old. The
            # first time is ordinary, and a server that is busy must not be asked without a pause.
            was_idle = self._version in ("", version) and clock() - began_s < _SOON_S
            idle = idle + 1 if was_idle else 0
            if idle > 1:
                await _pause(min(_PAUSE_AFTER_FAILURE_S * 2 ** min(idle - 2, 10), _LONGEST_PAUSE_S))

    async def _relist(self) -> None:
        turns = Turns()
        fresh, version = await self._listed(turns)
        # Deletions first, so that callbacks see what is freed before it is used again.
        for key in [key for key in self._objects if key not in fresh]:
            self._put(key, None)
        for key, raw in fresh.items():
            known, obj = self._objects.get(key), orjson.loads(raw)
            # Metadata has the resourceVersion: if it is equal, nothing has changed.
            if known is None or orjson.loads(known)["metadata"] != obj["metadata"]:
                self._put(key, obj, raw=raw)
            # A large cluster takes seconds, and a scheduler has to renew its Lease meanwhile. Later
            # lists are told in one step: between what is gone and what is new, cards look free.
            if not self._synced.is_set():
                await turns.next()
        self._version = version
        self._synced.set()

    async def _listed(self, turns: Turns) -> tuple[dict[Key, bytes], str]:
        """All objects, and their version. As bytes: parsed, twenty thousand pods take 300 MB."""
        fresh: dict[Key, bytes] = {}
        version = ""
        async for page in self._kube.pages(
            self.resource, self._namespace, query=self._query, metadata_only=self._metadata_only
        ):
            if page.anew:
                fresh.clear()
            for obj in page.items:
                if not self._metadata_only:
                    # Kubernetes leaves out both in items of a list; events of a watch have them.
                    obj.setdefault("apiVersion", self.resource.api_version)
                    obj.setdefault("kind", self.resource.kind)
                short = self._shortened(obj)
                fresh[key_of(short)] = kept_json(short)
                await turns.next()
            version = page.resource_version
        return fresh, version

    def _shortened(self, obj: Obj) -> Obj:
        if self._part is None:
            return obj
        try:
            short: Obj = msgspec.to_builtins(msgspec.convert(obj, self._part))
        except msgspec.ValidationError as error:
            raise NoAnswer(f"an object that is none: {error}") from error
        return short

    async def _follow(self) -> None:
        query = {
            **self._query,
            "resourceVersion": self._version,
            # Bookmarks keep the version fresh while nothing changes, so that the next watch is not
            # refused with 410.
            "allowWatchBookmarks": "true",
            # A limit of its own: a server that is silent for longer is gone (`https.py`).
            "timeoutSeconds": "600",
        }
        rest, turns = b"", Turns()
        events = self._kube.watch(
            self.resource, self._namespace, query=query, metadata_only=self._metadata_only
        )
        # Closes the connection at once if parsing or a callback fails, not when the generator is
        # collected.
        async with contextlib.aclosing(events):
            async for chunk in events:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line:
                        self._take(_event(line, self._part))
                        # A chunk may have thousands of events, or some of a megabyte each.
                        await turns.next()
                if len(rest) > _MAX_EVENT_BYTES:
                    raise NoAnswer(f"an event of more than {_MAX_EVENT_BYTES} bytes")

    def _take(self, event: Obj) -> None:
        try:
            kind, obj = event["type"], event["object"]
            version = obj["metadata"].get("resourceVersion", "") if kind != "ERROR" else ""
            key = key_of(obj) if kind in _CHANGES else ("", "")
        except (KeyError, TypeError, AttributeError) as error:
            raise NoAnswer(f"an event that is none: {error!r}") from error
        match kind:
            case "ADDED" | "MODIFIED":
                self._put(key, obj)
            case "DELETED":
                self._put(key, None, last=obj)
            case "ERROR":
                raise (Expired if obj.get("code") == 410 else Refused)(obj)
            case _:  # BOOKMARK: a newer version to continue from, without a change
                pass
        self._version = version

    def _put(
        self, key: Key, new: Obj | None, last: Obj | None = None, raw: bytes | None = None
    ) -> None:
        """`raw`: the new object as JSON, if somebody has it; `last`: a deleted one, as it was."""
        known = self._objects.get(key)
        old: Obj | None = None if known is None else orjson.loads(known)
        if old is not None:
            self._unindex(key, old)
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = raw or kept_json(new)
            for name, keys in self._index_keys.items():
                self._index(name, keys, new)
        # Deleted, but never seen: callbacks know nothing of it.
        if old is None and new is None:
            return
        for entry in list(self._callbacks):  # a copy: a callback may add another one
            self._call(key, entry, last or old if new is None else old, new)
        if new is None and self._faults and (gone := last or old):
            self._faults.forget(key, gone)

    def _call(
        self, key: Key, entry: tuple[str, Changed, Broke], old: Obj | None, new: Obj | None
    ) -> None:
        where, callback, broke = entry
        obj = new or old or {}
        try:
            callback(old, new)
        except Exception as error:  # noqa: BLE001  # whatever one object does, the others go on
            self._faults.add(key, obj, where, error, broke)
        else:
            if self._faults:
                self._faults.remove(key, obj, where)

    def _index(self, name: str, keys: IndexKeys, obj: Obj) -> None:
        where, key = f"index {name}", key_of(obj)
        try:
            values = list(keys(obj))  # all or none: a half indexed object could not be removed
            for value in values:
                self._indexes[name][value][key] = None
        except Exception as error:  # noqa: BLE001  # as for callbacks
            self._faults.add(key, obj, where, error, self._broke)
        else:
            if self._faults:
                self._faults.remove(key, obj, where)

    def _unindex(self, key: Key, old: Obj) -> None:
        for name, keys in self._index_keys.items():
            index = self._indexes[name]
            try:
                values = list(keys(old))
            except Exception:  # noqa: BLE001  # it was told when the object was indexed
                continue
            for value in values:
                index[value].pop(key, None)
                if not index[value]:
                    del index[value]


def controller_uid(obj: Obj) -> str:
    """The uid of the controlling owner, or the empty string."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner["uid"])
    return ""


class Mirrors:
    """One shared mirror for each resource: ten controllers need one watch."""

    def __init__(
        self,
        kube: Kube,
        broke: Broke = unheard,
        parts: Mapping[Resource, Any] = MappingProxyType({}),
    ) -> None:
        """`parts`: of which resources only some fields are read."""
        self._kube = kube
        self._broke = broke
        self._parts = parts
        self._mirrors: dict[Resource, Mirror] = {}

    def __iter__(self) -> Iterator[Mirror]:
        """Those that were requested so far."""
        return iter(list(self._mirrors.values()))

    def of(self, resource: Resource) -> Mirror:
        mirror = self._mirrors.get(resource)
        if mirror is None:
            part = self._parts.get(resource)
            mirror = Mirror(self._kube, resource, part=part, broke=self._broke)
            self._mirrors[resource] = mirror
        return mirror
