"""Reader: what commands and the console ask of a history file.

Two questions: the sums of all series of a kind over a time (`sums`), and one series point by point
(`points`). What nobody saw is None, never 0.
"""

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpupool.history.blocks import SERIES, block_figures
from gpupool.history.database import NoHistory, opened_to_read
from gpupool.history.levels import LEVELS, level_for_chart, level_for_sum
from gpupool.history.samples import FIELDS, PEAK, Figures, Sample, sample_of
from gpupool.history.series import Kind, Series

MOST_POINTS = 400
_MOST_OF_ANY = 10_000  # the hours of a year


@dataclass(frozen=True, slots=True)
class Sums:
    since_s: int  # begins with a slot, so it may be a little before what was asked for
    until_s: int
    of: tuple[tuple[Series, Sample], ...]  # by name; those that were seen in this time


@dataclass(frozen=True, slots=True)
class Points:
    step_s: int
    since_s: int
    values: tuple[Sample | None, ...]  # one for each step; None: unknown


class Reader:
    """Raises NoHistory when it is made, and when the file turns out to be damaged."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._connection = opened_to_read(path)
        self._clock = clock

    def close(self) -> None:
        self._connection.close()

    def series(self, kind: Kind, prefix: str = "") -> list[Series]:
        """By name; those whose name begins with `prefix`."""
        return sorted((found for _, found in self._series(kind, prefix)), key=lambda s: s.name)

    def sums(
        self, kind: Kind, since_s: float, until_s: float | None = None, prefix: str = ""
    ) -> Sums:
        with self._one_state():
            return self._sums(kind, since_s, until_s, prefix)

    @contextlib.contextmanager
    def _one_state(self) -> Iterator[None]:
        """All that is read within the block is of one moment: the collector goes on meanwhile."""
        for _ in self._rows("BEGIN", ()):
            pass
        try:
            yield
        finally:
            self._connection.rollback()

    def _sums(self, kind: Kind, since_s: float, until_s: float | None, prefix: str) -> Sums:
        now_s = self._clock()
        until_s = now_s if until_s is None else until_s
        level = level_for_sum(since_s, until_s, now_s)
        start_s = _floor(since_s, level)
        places = self._series(kind, prefix)
        wanted = sorted({place // SERIES for place, _ in places})
        total = {block: np.zeros((SERIES, FIELDS), np.int64) for block in wanted}
        begins = _begins(places, level)
        for block in wanted:
            for at, figures in self._blocks(kind, level, block, start_s, int(until_s)):
                # Of the time before a series began, its place was another's.
                figures[begins[block] > at] = 0
                peaks = np.maximum(total[block][:, PEAK], figures[:, PEAK])
                total[block] += figures
                total[block][:, PEAK] = peaks
        of = [(s, sample_of(total[place // SERIES][place % SERIES])) for place, s in places]
        seen = sorted(((s, sums) for s, sums in of if sums.seen), key=lambda each: each[0].name)
        return Sums(start_s, int(until_s), tuple(seen))

    def points(
        self,
        kind: Kind,
        name: str,
        since_s: float,
        until_s: float | None = None,
        most: int = MOST_POINTS,
    ) -> Points:
        """A series that is not known has only unknown points."""
        with self._one_state():
            return self._points(kind, name, since_s, until_s, most)

    def _points(
        self, kind: Kind, name: str, since_s: float, until_s: float | None, most: int
    ) -> Points:
        now_s = self._clock()
        until_s = now_s if until_s is None else until_s
        level = level_for_chart(since_s, until_s, now_s, most)
        step_s, start_s = LEVELS[level].step_s, _floor(since_s, level)
        count = max(0, -(-int(until_s - start_s) // step_s))
        if count > _MOST_OF_ANY:
            raise ValueError(f"{count} points: more than {_MOST_OF_ANY} are in no history")
        values: list[Sample | None] = [None] * count
        for place, found in self._series(kind, name, exactly=True):
            start_s_of = max(start_s, _floor(found.first_s, level))
            blocks = self._blocks(kind, level, place // SERIES, start_s_of, int(until_s))
            for at, figures in blocks:
                sample = sample_of(figures[place % SERIES])
                if sample.seen and (at - start_s) // step_s < len(values):
                    values[(at - start_s) // step_s] = sample
        return Points(step_s, start_s, tuple(values))

    def _series(
        self, kind: Kind, prefix: str, *, exactly: bool = False
    ) -> list[tuple[int, Series]]:
        query = "SELECT position, name, first_s, last_s, active_s, info FROM series WHERE kind = ?"
        # A range, which the index answers; LIKE would read special characters in names.
        query += " AND name = ?" if exactly else " AND name >= ? AND name < ?"
        bounds = (prefix,) if exactly else (prefix, prefix + "\U0010ffff")
        return [
            (place, Series(kind, name, first_s, last_s, active_s, json.loads(info)))
            for place, name, first_s, last_s, active_s, info in self._rows(query, (kind, *bounds))
        ]

    def _blocks(
        self, kind: Kind, level: int, block: int, since_s: int, until_s: int
    ) -> Iterator[tuple[int, Figures]]:
        query = (
            "SELECT start_s, data FROM blocks WHERE kind = ? AND level = ? AND block = ? "
            "AND start_s >= ? AND start_s < ? ORDER BY start_s"
        )
        for at, data in self._rows(query, (kind, level, block, since_s, until_s)):
            try:
                yield at, block_figures(data)
            except ValueError as error:
                raise NoHistory(f"the history is damaged: {error}") from error

    def _rows(self, query: str, values: tuple[object, ...]) -> "Iterator[tuple]":  # type: ignore[type-arg]
        try:
            yield from self._connection.execute(query, values)
        except sqlite3.DatabaseError as error:
            raise NoHistory(f"the history cannot be read: {error}") from error


def _floor(at_s: float, level: int) -> int:
    step_s = LEVELS[level].step_s
    return int(at_s) // step_s * step_s


def _begins(places: list[tuple[int, Series]], level: int) -> dict[int, Figures]:
    """The slot in which each series of a block begins; a place without a series never does."""
    begins: dict[int, Figures] = {}
    for place, found in places:
        block = begins.setdefault(place // SERIES, np.full(SERIES, np.iinfo(np.int64).max))
        block[place % SERIES] = _floor(found.first_s, level)
    return begins
