"""watch: what is there now if asked for, then every change, as lines of JSON.

Chunks hold all events since the last one: a watcher that reads slowly gets fewer, larger chunks.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import orjson

from kubeclient.objects import Obj
from kubeclient.turns import Turns
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import Request, Stream
from localkube.apiserver.routing import Target
from localkube.apiserver.store.record import Record
from localkube.apiserver.store.watch_log import ADDED, Watcher
from localkube.apiserver.tables import table as tables
from localkube.apiserver.verbs.options import ListOptions
from localkube.apiserver.verbs.read import parse_version, settled, too_large_version
from localkube.apiserver.verbs.representation import (
    Form,
    body_of,
    shown,
    wanted,
)
from localkube.apiserver.verbs.selection import (
    is_chosen_by_store,
    matching,
    select,
    selection,
)

# As often as kube-apiserver.
BOOKMARK_EVERY_S = 60.0
# kube-apiserver ends watches after 30 to 60 minutes by default (--min-request-timeout).
_LONGEST_S = 3600.0
_DEFAULT_S = 1800.0
_SLICE = 500  # objects of the beginning in one chunk

# Of an event's type, its version, and the object as it is served.
Render = Callable[[str, int, bytes], bytes]


async def watch(api: Api, request: Request, target: Target, options: ListOptions) -> Stream:
    try:
        version = parse_version(options.resource_version) if options.resource_version else 0
    except ValueError as error:
        raise status.failure(500, "", str(error)) from error
    matches = selection(api, target, options)
    kind = target.kind
    render = _renderer(api, request, kind)
    watch_log = api.store.log(kind.resource)
    wants_initial = options.send_initial or (version == 0 and options.send_initial is None)

    def present() -> tuple[tuple[Sequence[Record], int], int]:
        now = api.store.version
        return (list(select(api.store, target, options)), now), now

    initial: Sequence[Record] = ()
    if wants_initial and version > api.store.version:
        # The client has seen a later state than there is here, and must not be led back.
        return Stream(_refused(too_large_version(version, api.store.version)))
    if wants_initial:
        # The list is of a version that is on disk, and the watch goes on from that version: what is
        # committed while we wait here comes as an event after the list.
        initial, version = await settled(api, present)
    # From published_rv, not from the newest version in memory: the events between are yet to come.
    watcher = watch_log.follow(version or api.store.published_rv, matches)
    if watcher is None:
        # As kube-apiserver does it: status 200, and the error 410 as an event of the stream.
        compacted = watch_log.compacted_rv
        return Stream(_refused(status.gone(f"too old resource version: {version} ({compacted})")))
    timeout_s = min(options.timeout_s or _DEFAULT_S, _LONGEST_S)
    if not is_chosen_by_store(target, options):
        initial = await matching(initial, matches)
    follower = _Follower(api, kind, watcher, render, options)
    return Stream(follower.chunks(initial, timeout_s))


class _Follower:
    """One client's stream. The wake-up is an event, so an idle watch costs nothing."""

    def __init__(
        self, api: Api, kind: Kind, watcher: Watcher, render: Render, options: ListOptions
    ) -> None:
        self._api = api
        self._kind = kind
        self._watcher = watcher
        self._render = render
        self._options = options
        self._told_rv = watcher.after_rv  # the client knows of everything up to here

    async def chunks(self, initial: Sequence[Record], timeout_s: float) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_s
        try:
            # In slices, because rendering a hundred thousand pods at once would block the loop.
            for start in range(0, len(initial), _SLICE):
                part = initial[start : start + _SLICE]
                yield await self._events([(ADDED, record) for record in part])
            if self._announces_end():
                # What has come meanwhile is still to be told: the version is that of the start.
                yield self._bookmark(self._watcher.after_rv, end_of_initial=True)
            while not self._watcher.cut and (left := end - loop.time()) > 0:
                if self._watcher.buffer:
                    yield await self._events(self._drained())
                    continue
                woken = await self._woken(min(left, BOOKMARK_EVERY_S))
                if not woken and self._options.bookmarks and self._version() > self._told_rv:
                    yield self._bookmark(self._version())
        except status.ApiError as error:  # an object could not be converted
            yield _error_line(error)
        finally:
            self._api.store.log(self._kind.resource).unfollow(self._watcher)

    async def _events(self, events: Sequence[tuple[str, Record]]) -> bytes:
        stored = [record for _, record in events]
        records = await self._api.conversions.served(stored, self._kind, in_watch=True)
        lines, turns = list[bytes](), Turns()
        for (type_, _), record in zip(events, records, strict=True):
            lines.append(self._render(type_, record.rv, body_of(record, self._kind)))
            await turns.next()
        return b"".join(lines)

    def _announces_end(self) -> bool:
        """Whether a bookmark tells the client that it has all objects of the start."""
        options = self._options
        unasked = options.send_initial is None and not options.resource_version
        return options.bookmarks and (unasked or bool(options.send_initial))

    def _drained(self) -> Sequence[tuple[str, Record]]:
        buffer = self._watcher.buffer
        taken = [buffer.popleft() for _ in range(len(buffer))]
        self._watcher.buffered_bytes = 0
        self._watcher.after_rv = taken[-1][1].rv
        return taken

    async def _woken(self, limit_s: float) -> bool:
        wake = self._watcher.wake
        wake.clear()
        if self._watcher.buffer or self._watcher.cut:
            return True
        try:
            async with asyncio.timeout(limit_s):
                await wake.wait()
        except TimeoutError:
            # An event may have come in the moment of the timeout, and a bookmark must not promise
            # a version of which an event is still to come.
            return bool(self._watcher.buffer) or self._watcher.cut
        return True

    def _version(self) -> int:
        return max(self._watcher.after_rv, self._api.store.published_rv)

    def _bookmark(self, version: int, *, end_of_initial: bool = False) -> bytes:
        self._told_rv = version
        metadata: Obj = {"resourceVersion": str(version)}
        if end_of_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        return self._render("BOOKMARK", version, orjson.dumps(obj))


async def _refused(error: status.ApiError) -> AsyncIterator[bytes]:
    yield _error_line(error)


def _error_line(error: status.ApiError) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": error.status}) + b"\n"


def _renderer(api: Api, request: Request, kind: Kind) -> Render:
    form = wanted(request)
    if form is Form.TABLE:
        return _table_renderer(api, request, kind)
    if form in (Form.PARTIAL, Form.PARTIAL_LIST):
        return lambda type_, _, body: _line(type_, tables.partial_metadata_bytes(body))
    return lambda type_, _, body: _line(type_, body)


def _line(type_: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)


def _table_renderer(api: Api, request: Request, kind: Kind) -> Render:
    """Column definitions go with the first event only."""
    include, _ = shown(api, request)
    rows_bytes = tables.table_bytes

    def render(type_: str, version: int, body: bytes) -> bytes:
        nonlocal rows_bytes
        metadata = {"resourceVersion": str(version)}
        rows = rows_bytes(kind, [body], metadata, include, api.clock())
        rows_bytes = tables.further_table_bytes
        return _line(type_, rows)

    return render
