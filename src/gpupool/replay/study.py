"""A study: one trace replayed with several policies and seeds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpupool.replay.arrivals import Arrivals, by_time, churn, filling
from gpupool.replay.figures import (
    Curve,
    Figures,
    churn_curve,
    churn_figures,
    filling_curve,
    filling_figures,
    fragment_curve,
    timed_curve,
    waiting_curve,
)
from gpupool.replay.load import at_load
from gpupool.replay.run import Decision, Progress, ReplayRecord, replay
from gpupool.replay.timed import replay_timed
from gpupool.replay.timed_figures import timed_figures, wait_curve
from gpupool.replay.trace import Trace


@dataclass(frozen=True, slots=True)
class Method:
    """How a trace is replayed. `load`: the part of the GPUs that pods ask for; 0: as it is."""

    name: str  # "filling", "churn" or "timed"
    load: float = 0.0
    given: Arrivals | None = None  # a given order of arrival, instead of a random one
    # Timed: whether room is kept for pods that wait for long; both, one after the other.
    reserves: tuple[bool, ...] = (True,)


@dataclass(frozen=True, slots=True)
class Outcome:
    policy: str
    seed: int | None  # None: nothing was random
    figures: Figures
    decisions: Sequence[Decision]
    curves: dict[str, Curve]  # by panel
    reserves: bool | None = None  # None: nobody waits in this method


def prepared(trace: Trace, method: Method) -> Trace:
    """The trace as the method wants it. Once for all runs."""
    return at_load(trace, method.load) if method.name == "timed" and method.load else trace


def arrivals_for(trace: Trace, method: Method, seed: int) -> Arrivals:
    if method.given is not None:
        return method.given
    return filling(trace, seed) if method.name == "filling" else churn(trace, method.load, seed)


def decisions_ahead(trace: Trace, method: Method, seeds: Sequence[int]) -> int:
    """How many decisions one policy will make, for a progress bar."""
    if method.name == "timed":
        return len(by_time(trace)) * len(method.reserves)
    if method.given is not None:
        return len(method.given.order)
    return sum(len(arrivals_for(trace, method, seed).order) for seed in seeds)


def outcomes(
    trace: Trace, method: Method, policies: Sequence[str], seeds: Sequence[int], progress: Progress
) -> Iterator[Outcome]:
    """The trace is `prepared`. Timed, the seeds are not asked: nothing is drawn but the trace."""
    for policy in policies:
        if method.name == "timed":
            for reserves in method.reserves:
                yield _in_time(trace, policy, progress, reserves=reserves)
            continue
        for seed in seeds if method.given is None else seeds[:1]:
            several = method.given is None and len(seeds) > 1
            label = f"{policy}, seed {seed}" if several else policy
            yield _in_arrivals(trace, method, Outcome(policy, seed, {}, (), {}), label, progress)


def _in_arrivals(
    trace: Trace, method: Method, what: Outcome, label: str, progress: Progress
) -> Outcome:
    arrivals = arrivals_for(trace, method, what.seed or 0)
    record = replay(trace, arrivals, what.policy, progress)
    curves = {"fragments": fragment_curve(label, trace, record)}
    figures: Callable[[Trace, Arrivals, ReplayRecord], Figures] = churn_figures
    if method.name == "filling":
        figures = filling_figures
        curves["allocated"] = filling_curve(label, trace, arrivals, record)
    else:
        curves["allocated"] = churn_curve(label, trace, record)
    seed = what.seed if method.given is None else None
    return Outcome(what.policy, seed, figures(trace, arrivals, record), record.decisions, curves)


def _in_time(trace: Trace, policy: str, progress: Progress, *, reserves: bool) -> Outcome:
    record = replay_timed(trace, policy, progress, reserves=reserves)
    label = policy if reserves else f"{policy}, no reservations"
    label += "" if trace.seed is None else f", seed {trace.seed}"
    curves = {
        "allocated": timed_curve(label, trace, record),
        "waiting": waiting_curve(label, record),
        "waits": wait_curve(label, trace, record),
    }
    figures = timed_figures(trace, record)
    return Outcome(policy, trace.seed, figures, record.decisions, curves, reserves)
