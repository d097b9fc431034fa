"""Figures of a replay for JSON and tables; percent of the cluster's GPUs unless stated."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from gpupool.replay.arrivals import FILL_TO, Arrivals
from gpupool.replay.run import ReplayRecord
from gpupool.replay.timed import TimedRecord
from gpupool.replay.trace import Trace

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot: GPU allocated (or another quantity) over GPU arrived (or time)."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def filling_figures(trace: Trace, arrivals: Arrivals, record: ReplayRecord) -> Figures:
    arrived = _arrived(trace, arrivals)
    capacity = trace.capacity_milli
    multi = [decision for decision in record.decisions if trace.pods[decision.pod].cards > 1]
    refused = next((at for at, d in enumerate(record.decisions) if not d.node), None)
    return {
        "alloc_at_100": _allocated_at(1.0, arrived, record.allocated_milli, capacity),
        "alloc_at_130": _allocated_at(FILL_TO, arrived, record.allocated_milli, capacity),
        "auc": _area(arrived, record.allocated_milli, capacity),
        "decisions": len(record.decisions),
        "decisions_per_s": rate(len(record.decisions), record.seconds),
        "accepted_multi_gpu": percent(sum(bool(d.node) for d in multi), len(multi)),
        "first_refusal_at": None if refused is None else percent(arrived[refused], capacity),
    }


def _arrived(trace: Trace, arrivals: Arrivals) -> list[int]:
    return list(accumulate(trace.pods[arrival.pod].gpu_milli for arrival in arrivals.order))


def _allocated_at(
    part: float, arrived: Sequence[int], allocated: Sequence[int], capacity: int
) -> float | None:
    """The value after the arrival that reaches `part` of capacity; None: never reached."""
    at = bisect_left(arrived, part * capacity)
    return percent(allocated[at], capacity) if at < len(arrived) else None


def _area(arrived: Sequence[int], allocated: Sequence[int], capacity: int) -> float | None:
    """The mean allocation over the GPU that arrived, up to FILL_TO of the cluster."""
    area, before = 0, 0
    for reached, held in zip(arrived, allocated, strict=True):
        reached = min(reached, int(FILL_TO * capacity))
        area += held * (reached - before)
        before = reached
    return percent(area, before * capacity)


def churn_figures(trace: Trace, arrivals: Arrivals, record: ReplayRecord) -> Figures:
    measured = record.decisions[arrivals.measured_from :]
    offered = sum(trace.pods[d.pod].gpu_milli for d in measured)
    accepted = sum(trace.pods[d.pod].gpu_milli for d in measured if d.node)
    multi = [d for d in measured if trace.pods[d.pod].cards > 1]
    held = record.allocated_milli[arrivals.measured_from :]
    return {
        "accepted_gpu": percent(accepted, offered),
        "accepted_multi_gpu": percent(sum(bool(d.node) for d in multi), len(multi)),
        "allocated": percent(sum(held), len(held) * trace.capacity_milli),
        "decisions": len(record.decisions),
        "decisions_per_s": rate(len(record.decisions), record.seconds),
    }


def filling_curve(label: str, trace: Trace, arrivals: Arrivals, record: ReplayRecord) -> Curve:
    capacity = trace.capacity_milli
    return Curve(
        label,
        tuple(100 * value / capacity for value in _arrived(trace, arrivals)),
        tuple(100 * value / capacity for value in record.allocated_milli),
    )


def churn_curve(label: str, trace: Trace, record: ReplayRecord) -> Curve:
    held = record.allocated_milli
    return Curve(
        label,
        tuple(float(at) for at in range(len(held))),
        tuple(100 * value / trace.capacity_milli for value in held),
    )


def fragment_curve(label: str, trace: Trace, record: ReplayRecord) -> Curve:
    samples = record.fragments
    return Curve(
        label,
        tuple(float(at) for at, _ in samples),
        tuple(100 * milli / trace.capacity_milli for _, milli in samples),
    )


def timed_curve(label: str, trace: Trace, record: TimedRecord) -> Curve:
    return Curve(
        label,
        tuple(time / 3600 for time in record.times_s),
        tuple(100 * value / trace.capacity_milli for value in record.allocated_milli),
    )


def waiting_curve(label: str, record: TimedRecord) -> Curve:
    times = tuple(time / 3600 for time in record.times_s)
    return Curve(label, times, tuple(float(count) for count in record.waiting))


def percent(part: float, whole: float) -> float | None:
    return round(100 * part / whole, 3) if whole else None


def rate(decisions: int, seconds: float) -> float | None:
    return round(decisions / seconds, 1) if seconds else None
