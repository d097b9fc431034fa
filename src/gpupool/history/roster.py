"""Roster: which series has which place in the store. Bounded: the oldest ones give way.

A place is given again when its series falls out. What the blocks say of the time before the new
series began is not its own; readers leave that out.
"""

import heapq
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpupool.history.levels import HOUR_S, LONGEST_S
from gpupool.history.series import MOST, Info, Key, Kind

_LONGEST_INFO = 4096
_BATCH = 64  # so many fall out at once, so that they are not looked for with every new one


@dataclass(slots=True)
class _Line:
    """One series. Not frozen: each minute changes every one of them."""

    name: str
    first_s: int
    last_s: int
    active_s: int | None = None
    info: Info = field(default_factory=dict)
    saved_active_s: int | None = None  # what the file says


class Roster:
    def __init__(self, most: Mapping[Kind, int] = MOST) -> None:
        self._most = most
        self._places: dict[Kind, dict[str, int]] = {kind: {} for kind in Kind}
        self._series: dict[Kind, dict[int, _Line]] = {kind: {} for kind in Kind}
        self._free: dict[Kind, list[int]] = {kind: [] for kind in Kind}
        self._next: dict[Kind, int] = dict.fromkeys(Kind, 0)
        self._dirty: dict[tuple[Kind, int], None] = {}
        self._gone: set[tuple[Kind, int]] = set()
        self._vacated: dict[tuple[Kind, int], int] = {}  # until when a place was another's
        self.refused = 0  # new series for which there was no place
        self._seen: Iterable[Key] = ()
        self._kept: dict[Kind, set[str]] = {}  # names of `_seen`, once they are needed
        self._full: set[Kind] = set()

    def load(self, connection: sqlite3.Connection) -> None:
        for kind, place, *row in connection.execute(
            "SELECT kind, position, name, first_s, last_s, active_s, info FROM series"
        ):
            name, first_s, last_s, active_s, info = row
            facts = (first_s, last_s, active_s, json.loads(info))
            self._places[Kind(kind)][name] = place
            self._series[Kind(kind)][place] = _Line(name, *facts, active_s)
        for each in Kind:
            taken = self._series[each]
            self._next[each] = max(taken, default=-1) + 1
            self._free[each] = [n for n in range(self._next[each]) if n not in taken]

    def newest_s(self) -> int | None:
        """When something was last written; None: nothing was."""
        return max(
            (line.last_s for lines in self._series.values() for line in lines.values()),
            default=None,
        )

    def size(self, kind: Kind) -> int:
        """Places that were ever given."""
        return self._next[kind]

    def expect(self, seen: Iterable[Key]) -> None:
        """Those that get places next. None of them falls out for another."""
        self._seen, self._kept = seen, {}
        self._full.clear()

    def place(self, key: Key, now_s: int) -> tuple[int, bool] | None:
        """The place of a series, and whether it is new there. None: there is none left."""
        found = self._places[key.kind].get(key.name)
        if found is not None:
            self._begin_by(key.kind, found, now_s)
            return found, False
        place = self._vacant(key.kind)
        if place is None:
            self.refused += 1
            return None
        self._places[key.kind][key.name] = place
        self._series[key.kind][place] = _Line(key.name, now_s, now_s)
        self._dirty[key.kind, place] = None
        return place, True

    def _begin_by(self, kind: Kind, place: int, now_s: int) -> None:
        """A clock was set back: what is before the beginning of a series would not be read."""
        line = self._series[kind][place]
        if self._vacated.get((kind, place), 0) <= now_s < line.first_s:
            line.first_s = now_s
            self._dirty[kind, place] = None

    def note(
        self, kind: Kind, place: int, now_s: int, active_s: int | None, info: Info | None
    ) -> None:
        """What is known of the series at a place."""
        line = self._series[kind][place]
        # Not with every minute: a hundred thousand rows would be written for nothing new.
        is_dirty = now_s // HOUR_S != line.last_s // HOUR_S
        line.last_s = now_s
        if active_s is not None:
            active_s = min(active_s, now_s)  # clocks of nodes differ
        if active_s is not None and (line.active_s is None or active_s > line.active_s):
            line.active_s = active_s
        elif line.active_s != line.saved_active_s:
            # The last activity is written once it stays the same: then it is what people ask for.
            is_dirty = True
        if info is not None and info != line.info and len(json.dumps(dict(info))) <= _LONGEST_INFO:
            line.info = info
            is_dirty = True
        if is_dirty:
            self._dirty[kind, place] = None

    def ended(self, key: Key) -> None:
        """Nothing more comes of it for now: what was noted is written."""
        place = self._places[key.kind].get(key.name)
        if place is not None:
            self._dirty[key.kind, place] = None

    def expire(self, now_s: int) -> None:
        """Forgets series of which nothing is kept any more."""
        for kind in Kind:
            for place, line in self._series[kind].items():
                if line.last_s > now_s:  # the clock was ahead then
                    line.last_s = now_s
                    self._dirty[kind, place] = None
            old = [s.name for s in self._series[kind].values() if now_s - s.last_s > LONGEST_S]
            for name in old:
                self._forget(kind, name)

    def save(self, connection: sqlite3.Connection) -> None:
        connection.executemany("DELETE FROM series WHERE kind = ? AND position = ?", self._gone)
        rows = []
        for kind, place in self._dirty:
            found = self._series[kind].get(place)
            if found is not None:
                facts = (found.first_s, found.last_s, found.active_s, json.dumps(dict(found.info)))
                rows.append((kind, place, found.name, *facts))
                found.saved_active_s = found.active_s
        connection.executemany("INSERT OR REPLACE INTO series VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def saved(self) -> None:
        """What `save` wrote is committed."""
        self._gone.clear()
        self._dirty.clear()

    def _vacant(self, kind: Kind) -> int | None:
        if not self._free[kind] and self._next[kind] < self._most[kind]:
            self._next[kind] += 1
            return self._next[kind] - 1
        if not self._free[kind] and kind not in self._full:
            self._make_room(kind)
        return self._free[kind].pop() if self._free[kind] else None

    def _make_room(self, kind: Kind) -> None:
        if kind not in self._kept:
            self._kept[kind] = {key.name for key in self._seen if key.kind is kind}
        kept = self._kept[kind]
        leave = (each for each in self._series[kind].values() if each.name not in kept)
        for each in heapq.nsmallest(_BATCH, leave, key=lambda each: each.last_s):
            self._forget(kind, each.name)
        if not self._free[kind]:  # not looked for again with each of thousands
            self._full.add(kind)

    def _forget(self, kind: Kind, name: str) -> None:
        place = self._places[kind].pop(name)
        self._vacated[kind, place] = self._series[kind].pop(place).last_s
        self._free[kind].append(place)
        self._gone.add((kind, place))
