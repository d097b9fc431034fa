"""Packing when only a sample of the nodes is looked at, as kube-scheduler offers the extender one.

    python -m bench.sampled_packing [percent ...]     100: all nodes; 0: as kube-scheduler wants

kube-scheduler goes round: it stops when it has found enough nodes for a pod, and goes on behind
them for the next. Here the sample is of nodes that have the right cards; kube-scheduler counts
cards of a node together, so that a few nodes of its sample may be of no use. A pod that fits on
none of the sample is led to the best of all (decision 40).
"""

import sys

import numpy as np

from bench.packing import openb_traces
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide, decide_on, policy_for
from gpupool.engine.policies import DEFAULT
from gpupool.engine.policies.policy import Policy
from gpupool.engine.verdict_cache import NEVER
from gpupool.engine.verdicts import verdict_of
from gpupool.replay import run
from gpupool.replay.study import Method, outcomes
from gpupool.replay.synthetic import synthetic_trace
from gpupool.replay.trace import Trace

PERCENT = (100, 0, 20, 10)
_FEWEST = 100  # nodes
_SYNTHETIC_NODES = 1_000


class Sampled:
    """Takes the place of `decide`."""

    def __init__(self, percent: int) -> None:
        self._percent = percent
        self._start = 0

    def __call__(
        self, cluster: ClusterModel, pod: PodRequest, policy: Policy
    ) -> Placement | Unschedulable:
        count = len(cluster)
        percent = self._percent or max(5, 50 - count // 125)  # kube-scheduler's own rule
        most = max(_FEWEST, count * percent // 100)
        if most >= count or not pod.gpus:
            return decide(cluster, pod, policy)
        fits = verdict_of(cluster, pod, policy_for(pod, policy)).costs[:count] != NEVER
        round_ = np.roll(np.arange(count), -self._start)
        found = np.flatnonzero(fits[round_])[:most]
        looked_at = int(found[-1]) + 1 if len(found) == most else count
        self._start = (self._start + looked_at) % count
        names = [cluster.at(int(node)).node.name for node in round_[found]]
        decision = decide_on(cluster, pod, policy, names)
        return decision if isinstance(decision, Placement) else decide(cluster, pod, policy)


def figures(trace: Trace, percent: int) -> tuple[float, float]:
    """In %: GPUs allocated when all pods have come, and accepted under churn at full load."""
    found = []
    for method, name in (
        (Method("filling"), "alloc_at_100"),
        (Method("churn", 1.0), "accepted_gpu"),
    ):
        run.decide = Sampled(percent)  # type: ignore[attr-defined]
        (outcome,) = outcomes(trace, method, [DEFAULT], (0,), lambda _: None)
        found.append(float(outcome.figures[name] or 0.0))
    return found[0], found[1]


def main(percents: tuple[int, ...]) -> None:
    for trace in openb_traces() or [synthetic_trace(_SYNTHETIC_NODES)]:
        for percent in percents:
            allocated, accepted = figures(trace, percent)
            print(f"{trace.name:<32}{percent:>4} %{allocated:>8.2f}{accepted:>8.2f}", flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or PERCENT)
