"""Store: writes history. Each call of `add` is one transaction.

A sample is added to the current slot of every level. The current slots are kept in memory as well,
and are read from the file after a restart: so a slot goes on where the last transaction ended.
"""

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from gpupool.history.blocks import SERIES, block_bytes, block_figures
from gpupool.history.database import is_damage, opened_to_write, set_aside
from gpupool.history.levels import DAY_S, HOUR_S, LEVELS, slots
from gpupool.history.roster import Roster
from gpupool.history.samples import FIELDS, Figures, Sample, add_rows, part
from gpupool.history.series import MOST, Info, Key, Kind

log = logging.getLogger(__name__)

MOST_BYTES = 4 * 1024**3
_TRIMMED = 10  # a tenth of the hours goes when the file is too large


class Entry(NamedTuple):
    """What is added to one series."""

    sample: Sample
    active_s: int | None = None  # when it last used a card
    info: Info | None = None  # None: as before


class _Placed(NamedTuple):
    """Series of one kind: their places, those that are new there, and what is added."""

    at: list[int]
    new: list[int]
    samples: list[Sample]


class _Open:
    """The current slot of one level of one kind."""

    def __init__(self, start_s: int, figures: Figures) -> None:
        self.start_s = start_s
        self.figures = figures

    def reach(self, places: int) -> None:
        missing = places - len(self.figures)
        if missing > 0:
            more = np.zeros((-(-missing // SERIES) * SERIES, FIELDS), np.int64)
            self.figures = np.concatenate((self.figures, more))


class Store:
    def __init__(
        self, path: Path, most: Mapping[Kind, int] = MOST, most_bytes: int = MOST_BYTES
    ) -> None:
        """Raises OSError and sqlite3.OperationalError (a full disk, no right to write)."""
        self._path, self._most, self._most_bytes = path, most, most_bytes
        self._is_open = False
        self._open()

    def _open(self) -> None:
        self._connection = opened_to_write(self._path)
        self._roster = Roster(self._most)
        self._current: dict[tuple[Kind, int], _Open] = {}
        self._before: set[Key] = set()
        self._swept_s = self._steady_s = 0
        try:
            self._roster.load(self._connection)
            self._last_s = self._roster.newest_s()
        except (sqlite3.DatabaseError, ValueError) as error:
            self.close()
            if not is_damage(error):
                raise
            self._begin_anew(error)
        self._is_open = True

    def _begin_anew(self, error: Exception) -> None:
        kept = set_aside(self._path)
        log.warning("history is damaged, begins anew", extra={"kept": kept, "error": str(error)})
        self._open()

    def close(self) -> None:
        self._is_open = False
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def refused(self) -> int:
        """New series for which there was no place."""
        return self._roster.refused

    def add(self, from_ms: int, until_ms: int, entries: Mapping[Key, Entry]) -> None:
        """What happened from one time to another. All of it is written, or nothing.
        Raises sqlite3.OperationalError (a full disk): then the next call may succeed."""
        if not self._is_open:
            self._open()
        try:
            self._add(from_ms, until_ms, entries)
        except (sqlite3.DatabaseError, ValueError) as error:
            # What is in memory may be ahead of the file: it is read again.
            self.close()
            if not is_damage(error):
                raise
            self._begin_anew(error)

    def _add(self, from_ms: int, until_ms: int, entries: Mapping[Key, Entry]) -> None:
        now_s = until_ms // 1000
        self._watch_clock(now_s)
        with self._transaction():
            for kind, found in self._placed(from_ms // 1000, now_s, entries).items():
                self._write(kind, found, from_ms, until_ms)
            for gone in self._before - entries.keys():
                self._roster.ended(gone)
            if self._is_steady and not 0 <= now_s - self._swept_s < HOUR_S:
                self._sweep(now_s)
            self._roster.save(self._connection)
        self._roster.saved()
        self._before = set(entries)

    def _watch_clock(self, now_s: int) -> None:
        """A clock that has jumped may jump back: nothing is forgotten until it has gone steadily
        for an hour."""
        if self._last_s is not None and not 0 <= now_s - self._last_s <= DAY_S:
            self._steady_s = now_s + HOUR_S
        self._last_s = now_s

    @property
    def _is_steady(self) -> bool:
        return self._last_s is not None and self._last_s >= self._steady_s

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _placed(self, from_s: int, now_s: int, entries: Mapping[Key, Entry]) -> dict[Kind, _Placed]:
        found = {kind: _Placed([], [], []) for kind in Kind}
        self._roster.expect(entries)
        for key, (sample, active_s, info) in entries.items():
            placed = self._roster.place(key, from_s)
            if placed is not None:
                place, is_new = placed
                self._roster.note(key.kind, place, now_s, active_s, info)
                of_kind = found[key.kind]
                of_kind.at.append(place)
                of_kind.samples.append(sample)
                if is_new:
                    of_kind.new.append(place)
        return {kind: placed for kind, placed in found.items() if placed.at}

    def _write(self, kind: Kind, placed: _Placed, from_ms: int, until_ms: int) -> None:
        at = np.array(placed.at, np.intp)
        new = np.array(placed.new, np.intp)
        figures = np.array(placed.samples, np.int64)
        blocks = np.unique(at // SERIES).tolist()
        for level, values in enumerate(LEVELS):
            for slot in slots(values, from_ms, until_ms):
                current = self._slot(kind, level, slot.start_s)
                current.reach(self._roster.size(kind))
                current.figures[new] = 0  # another series had the place before
                share = part(figures, slot.begin, slot.end, until_ms - from_ms)
                add_rows(current.figures, at, share)
                rows = [
                    (kind, level, block, slot.start_s, _block(current.figures, block))
                    for block in blocks
                ]
                self._connection.executemany(
                    "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)", rows
                )

    def _slot(self, kind: Kind, level: int, start_s: int) -> _Open:
        current = self._current.get((kind, level))
        if current is None or current.start_s != start_s:
            if current is not None and self._is_steady:
                self._forget(kind, level, start_s - LEVELS[level].keep_s)
            current = _Open(start_s, self._stored(kind, level, start_s))
            self._current[kind, level] = current
        return current

    def _stored(self, kind: Kind, level: int, start_s: int) -> Figures:
        size = -(-self._roster.size(kind) // SERIES)
        figures = np.zeros((size * SERIES, FIELDS), np.int64)
        for block in range(size):
            row = self._connection.execute(
                "SELECT data FROM blocks WHERE kind = ? AND level = ? AND block = ? "
                "AND start_s = ?",
                (kind, level, block, start_s),
            ).fetchone()
            if row is not None:
                figures[block * SERIES : (block + 1) * SERIES] = block_figures(row[0])
        return figures

    def _forget(self, kind: Kind, level: int, before_s: int) -> None:
        self._connection.executemany(
            "DELETE FROM blocks WHERE kind = ? AND level = ? AND block = ? AND start_s < ?",
            (
                (kind, level, block, before_s)
                for block in range(-(-self._roster.size(kind) // SERIES))
            ),
        )

    def _sweep(self, now_s: int) -> None:
        """Once an hour: forgets series that ended long ago, and keeps the file within its size."""
        self._swept_s = now_s
        self._roster.expire(now_s)
        for kind in Kind:
            for level, values in enumerate(LEVELS):
                self._forget(kind, level, now_s - values.keep_s)
        self._connection.execute("PRAGMA incremental_vacuum(2000)")
        if self._used_bytes() > self._most_bytes:
            self._trim()

    def _trim(self) -> None:
        last = len(LEVELS) - 1
        oldest, newest = self._connection.execute(
            "SELECT min(start_s), max(start_s) FROM blocks WHERE level = ?", (last,)
        ).fetchone()
        until_s = oldest + max((newest - oldest) // _TRIMMED, LEVELS[last].step_s)
        log.warning("history is too large, its oldest part goes", extra={"until": until_s})
        for kind in (Kind.CONTAINER, Kind.CARD, Kind.NODE):  # sums of the others stay
            self._forget(kind, last, until_s)

    def _used_bytes(self) -> int:
        one = [
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        ]
        return int((one[0] - one[1]) * one[2])


def _block(figures: Figures, block: int) -> bytes:
    return block_bytes(figures[block * SERIES : (block + 1) * SERIES])
