"""What happened to one resource's objects: a short history, and the watchers that follow it.

Events come in after they are on disk, in order of resource version. A watcher sees each event
after its starting version exactly once, or is cut off and told to list again; never a gap.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from localkube.apiserver.store.record import Record

HISTORY_EVENTS = 5_000
WATCHER_BUFFER_BYTES = 16 * 1024 * 1024  # what a watcher may leave unread

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    record: Record  # for DELETED: the last state, with the version of the deletion
    previous: Record | None


Matches = Callable[[Record], bool]


class Watcher:
    """A bounded buffer of (type, record) between the log and one client."""

    def __init__(self, after_rv: int, matches: Matches | None) -> None:
        self.after_rv = after_rv
        self.matches = matches
        self.buffer: deque[tuple[str, Record]] = deque()
        self.buffered_bytes = 0  # whoever empties the buffer sets it back
        self.cut = False  # fell behind: the stream ends
        self.wake = asyncio.Event()

    def offer(self, event: Event) -> None:
        if event.record.rv <= self.after_rv or self.cut:
            return
        seen = self._as_seen(event)
        if seen is None:
            return
        self.buffered_bytes += len(seen[1].body)
        if self.buffered_bytes > WATCHER_BUFFER_BYTES:
            self.cut = True
            self.buffer.clear()
        else:
            self.buffer.append(seen)
        self.wake.set()

    def _as_seen(self, event: Event) -> tuple[str, Record] | None:
        """The event through the selector: an object that stops matching is DELETED for it."""
        if self.matches is None:
            return event.type, event.record
        now = event.type != DELETED and self.matches(event.record)
        before = event.previous is not None and self.matches(event.previous)
        if now:
            return (MODIFIED if before else ADDED), event.record
        if not before:
            return None
        if event.type == DELETED:
            return DELETED, event.record
        assert event.previous is not None
        return DELETED, _at_version(event.previous, event.record.rv)


def _at_version(record: Record, rv: int) -> Record:
    """The old object under a newer version, as a watcher gets it when it leaves the selection."""
    old, new = (f'"resourceVersion":"{v}"'.encode() for v in (record.rv, rv))
    return msgspec.structs.replace(record, rv=rv, body=record.body.replace(old, new, 1))


class WatchLog:
    """One per resource."""

    def __init__(self, compacted_rv: int) -> None:
        self.compacted_rv = compacted_rv  # history before this version is gone
        self._history: deque[Event] = deque()
        self._watchers: set[Watcher] = set()

    def publish(self, event: Event) -> None:
        if len(self._history) >= HISTORY_EVENTS:
            self.compacted_rv = self._history.popleft().record.rv
        self._history.append(event)
        for watcher in self._watchers:
            watcher.offer(event)

    def follow(self, after_rv: int, matches: Matches | None) -> Watcher | None:
        """None when the history does not reach back to `after_rv`."""
        if after_rv < self.compacted_rv:
            return None
        watcher = Watcher(after_rv, matches)
        for event in self._history:
            watcher.offer(event)
        self._watchers.add(watcher)
        return watcher

    def since(self, rv: int) -> list[Event] | None:
        """What happened after that version, in order; None when that is not known any more."""
        if rv < self.compacted_rv:
            return None
        return [event for event in self._history if event.record.rv > rv]

    def unfollow(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)
