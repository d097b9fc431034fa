"""Figures of a timed replay: who waited for how long, by number of cards.

Of a stream of pods those count that arrive in its window, and one that still waits at the end has
waited for so long at least: otherwise pods that starve would not be seen. GPU allocated counts from
the beginning of the window to the end of the stream; of a trace with its own times, from the middle
of the arrivals to the last one: before, the cluster fills; and after, it drains.
"""

from collections.abc import Sequence

from gpupool.replay.figures import Curve, Figures, percent, rate
from gpupool.replay.timed import TimedRecord, Wait
from gpupool.replay.trace import Trace

_SHORTEST_S = 10  # a run that counts for the slowdown: of a pod of a second nobody minds ten
_MANY = 10**6
_GROUPS = ((0, 0), (1, 1), (2, 7), (8, _MANY))  # numbers of cards of a job
_POINTS = 200


def timed_figures(trace: Trace, record: TimedRecord) -> Figures:
    counted = counted_waits(trace, record)
    waits = sorted(wait.waited_s for wait in counted)
    multi = _waits(trace, counted, 2, _MANY)
    placed = sum(wait.runs for wait in counted)
    return {
        "counted": len(counted),
        "placed": placed,
        "never_placed": (len(counted) if trace.window else len(trace.pods)) - placed,
        "waited": sum(wait > 0 for wait in waits),
        "wait_mean_s": _mean(waits),
        "wait_p95_s": quantile(waits, 0.95),
        "wait_p99_s": quantile(waits, 0.99),
        "multi_wait_mean_s": _mean(multi),
        "multi_wait_p99_s": quantile(multi, 0.99),
        "slowdown": _slowdown(trace, counted),
        "allocated": _allocated(trace, record),
        "allocated_most": percent(max(record.allocated_milli, default=0), trace.capacity_milli),
        "makespan_s": record.last_end_s,
        "reservations_made": record.reservations,
        "by_cards": [_group(trace, counted, least, most) for least, most in _GROUPS],
        "decisions": record.attempts,
        "decisions_per_s": rate(record.attempts, record.seconds),
    }


def counted_waits(trace: Trace, record: TimedRecord) -> list[Wait]:
    """Of the pods that are measured."""
    window = trace.window
    if window is None:
        return record.waits
    return [wait for wait in record.waits if window.begin_s <= wait.arrived_s < window.end_s]


def _group(trace: Trace, counted: Sequence[Wait], least: int, most: int) -> dict[str, object]:
    waits = _waits(trace, counted, least, most)
    return {
        "cards": f"{least}" if least == most else f"{least}-{most}" if most < 100 else f"{least}+",
        "pods": len(waits),
        "wait_mean_s": _mean(waits),
        "wait_p95_s": quantile(waits, 0.95),
        "wait_p99_s": quantile(waits, 0.99),
    }


def _waits(trace: Trace, counted: Sequence[Wait], least: int, most: int) -> list[int]:
    """From the shortest to the longest."""
    return sorted(w.waited_s for w in counted if least <= trace.pods[w.pod].cards <= most)


def _slowdown(trace: Trace, counted: Sequence[Wait]) -> float | None:
    """The mean of (waited + ran) / ran."""
    found = []
    for wait in counted:
        runs_s = trace.pods[wait.pod].runs_s
        if runs_s is not None:
            ran_s = max(runs_s, _SHORTEST_S)
            found.append((wait.waited_s + ran_s) / ran_s)
    return _mean(found, 3)


def _allocated(trace: Trace, record: TimedRecord) -> float | None:
    first = record.times_s[0] if record.times_s else 0
    begin, end = (first + record.last_arrival_s) / 2, float(record.last_arrival_s)
    if trace.window is not None:
        begin, end = trace.window.begin_s, trace.window.stop_s
    area = 0.0
    spans = zip(record.times_s, record.times_s[1:], record.allocated_milli, strict=False)
    for since, until, held in spans:
        area += held * max(0.0, min(until, end) - max(since, begin))
    return percent(area, (end - begin) * trace.capacity_milli)


def wait_curve(label: str, trace: Trace, record: TimedRecord) -> Curve:
    """How long pods with several cards waited, from the shortest to the longest."""
    waits = _waits(trace, counted_waits(trace, record), 2, _MANY)
    if not waits:
        return Curve(label, (), ())
    parts = [at / _POINTS for at in range(_POINTS + 1)]
    hours = [(quantile(waits, part) or 0) / 3600 for part in parts]
    return Curve(label, tuple(100 * part for part in parts), tuple(hours))


def quantile(in_order: Sequence[int], part: float) -> int | None:
    return in_order[min(len(in_order) - 1, int(part * len(in_order)))] if in_order else None


def _mean(values: Sequence[float], digits: int = 1) -> float | None:
    return round(sum(values) / len(values), digits) if values else None
