"""The watch cache: the recent events of one resource, and the watchers that follow them.

Events come in after they are on disk, in the order of their resourceVersion. A watcher gets each
event after its starting version exactly once, or its stream ends and it must list again: there is
never a gap that the client does not know of. Two limits keep memory bounded, and both end in a new
list, never in a lost event:

- The history window. Only the last HISTORY_EVENTS are kept, and no more than HISTORY_BYTES of
  them; what is over CALM_BYTES is kept for FRESH_S, so that memory comes back. A watch that starts
  before the window (`compacted_rv`) gets 410 Gone, as from etcd after a compaction.
- The watcher's buffer. A client that does not read is cut off at WATCHER_BUFFER_BYTES. Waiting for
  it would hold up the writers, and dropping single events would be a gap.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from localkube.apiserver.store.record import Record

HISTORY_EVENTS = 5_000
# Of one resource. An ordinary pod takes 4 KB twice; one of 1.5 MiB, changed again and again, would
# take gigabytes.
HISTORY_BYTES = 32 * 1024 * 1024
# Kubernetes' watch cache calls events fresh for as long. Whoever was away for longer, and missed
# more than this, lists again.
FRESH_S = 75.0
CALM_BYTES = 1024 * 1024
WATCHER_BUFFER_BYTES = 16 * 1024 * 1024  # what a watcher may leave unread

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    record: Record  # for DELETED: the last state, with the version of the deletion
    previous: Record | None

    @property
    def size(self) -> int:
        return len(self.record.body) + (len(self.previous.body) if self.previous else 0)


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
        # Also after a cut: the stream must wake up to end.
        self.wake.set()

    def _as_seen(self, event: Event) -> tuple[str, Record] | None:
        """The event as a client with a selector must see it.

        For such a client, an object that begins to match is ADDED and one that stops matching is
        DELETED, whatever really happened to it. `previous` is kept in events for this comparison.
        """
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
    """The old object under a newer version, as a watcher gets it when it leaves the selection.

    The client gets the state that it knows and may see, not the new one, which its selector hides;
    the version is that of the change, because a client goes on from the last version it has seen.
    """
    old, new = (f'"resourceVersion":"{v}"'.encode() for v in (record.rv, rv))
    return msgspec.structs.replace(record, rv=rv, body=record.body.replace(old, new, 1))


class WatchLog:
    """One per resource."""

    def __init__(self, compacted_rv: int) -> None:
        self.compacted_rv = compacted_rv  # history before this version is gone
        self._history: deque[Event] = deque()
        self._history_bytes = 0
        self._marks: deque[tuple[float, int]] = deque()  # when which version was the newest
        self._watchers: set[Watcher] = set()

    def publish(self, event: Event) -> None:
        self._history_bytes += event.size
        while self._history and (
            len(self._history) >= HISTORY_EVENTS or self._history_bytes > HISTORY_BYTES
        ):
            self._forget_oldest()
        self._history.append(event)
        # `offer` neither awaits nor calls anybody, so that the set cannot change meanwhile.
        for watcher in self._watchers:
            watcher.offer(event)

    def forget_stale(self, now_s: float) -> int:
        """How many bytes are forgotten. To be called from time to time."""
        before = self._history_bytes
        if before <= CALM_BYTES:
            self._marks.clear()
            return 0
        self._marks.append((now_s, self._history[-1].record.rv))
        stale_rv = 0
        while self._marks and self._marks[0][0] <= now_s - FRESH_S:
            stale_rv = self._marks.popleft()[1]
        while self._history_bytes > CALM_BYTES and self._history[0].record.rv <= stale_rv:
            self._forget_oldest()
        return before - self._history_bytes

    def _forget_oldest(self) -> None:
        oldest = self._history.popleft()
        self._history_bytes -= oldest.size
        # A watch from exactly this version is still possible: it needs only the events after it.
        self.compacted_rv = oldest.record.rv

    def follow(self, after_rv: int, matches: Matches | None) -> Watcher | None:
        """None when the history does not reach back to `after_rv`.

        Nothing awaits between reading the history and joining the watchers, so that no event can be
        published in between.
        """
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
