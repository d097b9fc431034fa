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
    timed_figures,
    waiting_curve,
)
from gpupool.replay.run import Decision, Progress, ReplayRecord, replay
from gpupool.replay.timed import replay_timed
from gpupool.replay.trace import Trace


@dataclass(frozen=True, slots=True)
class Method:
    """How a trace is replayed. `load`, for churn: the part of the GPUs that pods ask for."""

    name: str  # "filling", "churn" or "timed"
    load: float = 0.0
    given: Arrivals | None = None  # a given order of arrival, instead of a random one


@dataclass(frozen=True, slots=True)
class Outcome:
    policy: str
    seed: int | None  # None: nothing was random
    figures: Figures
    decisions: Sequence[Decision]
    curves: dict[str, Curve]  # by panel


def arrivals_for(trace: Trace, method: Method, seed: int) -> Arrivals:
    if method.given is not None:
        return method.given
    return filling(trace, seed) if method.name == "filling" else churn(trace, method.load, seed)


def decisions_ahead(trace: Trace, method: Method, seeds: Sequence[int]) -> int:
    """How many decisions one policy will make, for a progress bar."""
    if method.name == "timed":
        return len(by_time(trace))
    if method.given is not None:
        return len(method.given.order)
    return sum(len(arrivals_for(trace, method, seed).order) for seed in seeds)


def outcomes(
    trace: Trace, method: Method, policies: Sequence[str], seeds: Sequence[int], progress: Progress
) -> Iterator[Outcome]:
    drawn = method.given is None and method.name != "timed"
    for policy in policies:
        for seed in seeds if drawn else seeds[:1]:
            label = f"{policy}, seed {seed}" if drawn and len(seeds) > 1 else policy
            run = _in_time if method.name == "timed" else _in_arrivals
            yield run(trace, method, Outcome(policy, seed, {}, (), {}), label, progress)


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


def _in_time(
    trace: Trace, method: Method, what: Outcome, label: str, progress: Progress
) -> Outcome:
    record = replay_timed(trace, what.policy, progress)
    curves = {
        "allocated": timed_curve(label, trace, record),
        "waiting": waiting_curve(label, record),
    }
    return Outcome(what.policy, None, timed_figures(trace, record), record.decisions, curves)
