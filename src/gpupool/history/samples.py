"""Sample: what one series did during one stretch of time. Pure.

All figures are whole numbers, and all but the peak are sums over time. So a longer stretch is the
sum of its parts, to the last unit, in whichever order and however often it is added up. Averages
are made when somebody reads: a used figure over the time in which somebody told it.

Card-milliseconds: a whole card for a second is 1000, a fifth of a card for a second is 200.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

# Rows are series, columns are the fields of Sample.
Figures: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class Sample(NamedTuple):
    seen: int = 0  # milliseconds of which the API told; the rest of a slot is unknown
    have: int = 0  # card-milliseconds that existed (cards, nodes, pools, cluster)
    asked: int = 0  # card-milliseconds asked for: by pods that wait, and by those that have cards
    given: int = 0  # card-milliseconds given to pods
    told: int = 0  # of `given` (of cards, nodes, pools, cluster: of `have`): agents told the use
    used: int = 0  # card-milliseconds in which kernels ran
    idle: int = 0  # of `known`: in stretches in which no kernel ran at all
    memory_given: int = 0  # MiB-seconds
    memory_used: int = 0  # MiB-seconds
    energy: int = 0  # joules
    # What was given is used, idle or unknown, for every kind of series alike:
    known: int = 0  # of `given`: agents told the use
    within: int = (
        0  # of `known`: the pods' own kernels ran. Without what they used beyond their part
    )
    peak: int = 0  # MiB: the most memory in use at one time. Not a sum: the greatest of the parts


FIELDS = len(Sample._fields)
PEAK = Sample._fields.index("peak")
_MANY = 16  # from here on numpy is faster


def together(samples: Iterable[Sample]) -> Sample:
    """One series over several stretches, or several series over one. `seen` adds up, too: who
    puts several series together sets it."""
    found = list(samples)
    if len(found) == 1:
        return found[0]
    if len(found) > _MANY:
        figures = np.array(found, np.int64)
        return sample_of(figures.sum(axis=0))._replace(peak=int(figures[:, PEAK].max()))
    if not found:
        return Sample()
    *sums, peaks = zip(*found, strict=True)
    return Sample._make([*map(sum, sums), max(peaks)])


def part(figures: Figures, begin: int, end: int, total: int) -> Figures:
    """What falls into [begin, end) of a stretch of `total` milliseconds. The parts of a stretch add
    up to the whole exactly. The peak is in each of them: nobody knows when it was."""
    if (begin, end) == (0, total):
        return figures
    # First whole shares, then the rest: the product of figure and time could exceed 64 bits.
    whole, rest = np.divmod(figures, total)
    found: Figures = whole * (end - begin) + (rest * end // total - rest * begin // total)
    found[:, PEAK] = figures[:, PEAK]
    return found


def add_rows(into: Figures, at: "np.ndarray[Any, np.dtype[np.intp]]", figures: Figures) -> None:
    """Adds `figures` to the rows `at`, none of which occurs twice."""
    peaks = np.maximum(into[at, PEAK], figures[:, PEAK])
    into[at] += figures
    into[at, PEAK] = peaks


def sample_of(row: Figures) -> Sample:
    return Sample(*row.tolist())
