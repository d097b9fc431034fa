"""Arrivals and departures of pods: the three ways to replay a trace.

Filling: all pods of the trace in random order, then random pods of it, until enough GPU has
arrived; no pod leaves. Churn: random pods of the trace, each with a random lifetime; its mean is
chosen so that pods ask for a given part of the cluster. Timed: the times of the trace itself.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpupool.replay.rows import read_text
from gpupool.replay.trace import Trace, TraceError

FILL_TO = 1.3  # of the cluster's GPUs
# After 2.5 mean lives the number of running pods is within 8 % (e**-2.5) of its final mean.
_WARM_UP, _MEASURED = 2.5, 3.5  # mean lives
_MOST_ARRIVALS = 10_000_000


@dataclass(frozen=True, slots=True)
class Arrival:
    pod: int  # its index in the trace
    leaves: float | None = None  # number of the arrival before which it leaves


@dataclass(frozen=True, slots=True)
class Arrivals:
    order: tuple[Arrival, ...]
    measured_from: int = 0


def filling(trace: Trace, seed: int) -> Arrivals:
    draw = random.Random(seed)
    sizes = [pod.gpu_milli for pod in trace.pods]
    order = list(range(len(sizes)))
    draw.shuffle(order)
    wanted, arrived = FILL_TO * trace.capacity_milli, sum(sizes)
    _check(trace, sum(sizes))
    while arrived < wanted and len(order) < _MOST_ARRIVALS:
        pod = draw.randrange(len(sizes))
        order.append(pod)
        arrived += sizes[pod]
    return Arrivals(tuple(Arrival(pod) for pod in order))


def churn(trace: Trace, load: float, seed: int) -> Arrivals:
    """`load`: the part of the cluster's GPUs that pods ask for at any time."""
    draw = random.Random(seed)
    total = sum(pod.gpu_milli for pod in trace.pods)
    _check(trace, total)
    # One pod arrives in each step, so as many pods run as their mean life has steps (Little's law).
    life = load * trace.capacity_milli * len(trace.pods) / total
    count = int((_WARM_UP + _MEASURED) * life)
    if count > _MOST_ARRIVALS:
        raise TraceError(f"{trace.name}: churn would take {count} arrivals; that is too many")
    order = tuple(
        Arrival(draw.randrange(len(trace.pods)), at + draw.expovariate(1 / life))
        for at in range(count)
    )
    return Arrivals(order, int(_WARM_UP * life))


def _check(trace: Trace, asked: int) -> None:
    if not trace.capacity_milli:
        raise TraceError(f"{trace.name}: wanted nodes with GPUs, found none")
    if not asked:
        raise TraceError(f"{trace.name}: wanted pods that request a GPU, found none")


def from_file(trace: Trace, path: Path) -> Arrivals:
    """Names of pods, one per line; a name may occur several times."""
    places = {pod.request.name: at for at, pod in enumerate(trace.pods)}
    order = []
    for line, text in enumerate(read_text(path).splitlines(), 1):
        name = text.strip()
        if not name:
            continue
        if name not in places:
            raise TraceError(f"{path}:{line}: there is no pod {name[:80]!r} in the trace")
        order.append(Arrival(places[name]))
    if not order:
        raise TraceError(f"{path}: wanted a name of a pod in each line, found none")
    return Arrivals(tuple(order))


def by_time(trace: Trace) -> Sequence[int]:
    """Indexes of the pods, ordered by the arrival times of the trace."""
    if any(pod.arrives_s is None for pod in trace.pods):
        raise TraceError(
            f"{trace.name}: not all pods say when they arrive"
            " (columns creation_time and deletion_time, or arrives_s and runs_s;"
            " a snapshot of a cluster has no times)"
        )
    return sorted(range(len(trace.pods)), key=lambda at: (trace.pods[at].arrives_s or 0, at))


def seeds_of(text: str) -> Iterator[int]:
    """ "3" is one seed; "0:10" are ten, from 0 on."""
    first, _, end = text.partition(":")
    if not all(
        part.isascii() and part.isdigit() and len(part) < 10 for part in (first, end or "0")
    ):
        raise TraceError(f"seeds: wanted a number or two as in 0:10, found {text!r}")
    last = int(end) if end else int(first) + 1
    if not int(first) < last <= int(first) + 1000:
        raise TraceError(f"seeds: wanted from one to a thousand of them, found {text!r}")
    yield from range(int(first), last)
