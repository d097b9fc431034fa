"""Levels: how fine and for how long history is kept. Pure.

Every level is a complete account of its time: a sample is added to the current slot of each level.
So nothing is ever moved from one level to another, and nothing can be lost or counted twice there.
"""

from collections.abc import Iterator
from typing import NamedTuple

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400


class Level(NamedTuple):
    step_s: int
    keep_s: int


LEVELS = (
    Level(MINUTE_S, 4 * HOUR_S),
    Level(10 * MINUTE_S, 3 * DAY_S),
    Level(HOUR_S, 90 * DAY_S),
)
LONGEST_S = LEVELS[-1].keep_s
_FINE_ENOUGH = 100  # slots of a sum: its ends are at most a hundredth of it off


class Slot(NamedTuple):
    """The part of a stretch of time that falls into one slot, in milliseconds of the stretch."""

    start_s: int
    begin: int
    end: int


def slots(level: Level, from_ms: int, until_ms: int) -> Iterator[Slot]:
    """The slots that a stretch touches; their parts are the whole stretch, without overlap."""
    at = from_ms
    while at < until_ms:
        start_s = at // 1000 // level.step_s * level.step_s
        end = min(until_ms, (start_s + level.step_s) * 1000)
        yield Slot(start_s, at - from_ms, end - from_ms)
        at = end


def level_for_sum(since_s: float, until_s: float, now_s: float) -> int:
    """The coarsest level that is fine enough, of those that reach back to `since_s`."""
    found = len(LEVELS) - 1
    for index in reversed(range(len(LEVELS))):
        if now_s - since_s > LEVELS[index].keep_s:
            break
        found = index
        if LEVELS[index].step_s * _FINE_ENOUGH <= until_s - since_s:
            break
    return found


def level_for_chart(since_s: float, until_s: float, now_s: float, most: int) -> int:
    """The finest level that reaches back to `since_s` with at most so many points."""
    for index, level in enumerate(LEVELS):
        if now_s - since_s <= level.keep_s and (until_s - since_s) / level.step_s <= most:
            return index
    return len(LEVELS) - 1
