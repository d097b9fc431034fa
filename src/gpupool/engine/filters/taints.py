"""Taints that the pod does not tolerate. Evaluated once for each different set of taints."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.policies.policy import Ints
from kubeclient.placement import Effect, Taint


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    allowed: Bools = by_taints(cluster, nodes, lambda taints: not first_untolerated(pod, taints))
    return allowed.astype(np.bool_)


def by_taints(
    cluster: ClusterModel, nodes: Ints, judge: Callable[[tuple[Taint, ...]], int]
) -> NDArray[Any]:
    """What `judge` says of the taints of each node, asked once for each different set."""
    sets = cluster.columns.taints[nodes]
    found = np.zeros(len(cluster.taint_sets), dtype=np.int64)
    # Most changes concern one node: then the sets of all the others are of no interest.
    numbers = range(len(found)) if len(found) <= len(nodes) else set(sets.tolist())
    for number in numbers:
        found[number] = judge(cluster.taint_sets[number])
    return found[sets]


def first_untolerated(pod: PodRequest, taints: tuple[Taint, ...]) -> Taint | None:
    for taint in taints:
        if taint.effect == Effect.PREFER_NO_SCHEDULE:
            continue
        if not any(toleration.tolerates(taint) for toleration in pod.tolerations):
            return taint
    return None


def refusals(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> list[Refused]:
    found = []
    sets = cluster.columns.taints[nodes]
    for number in dict.fromkeys(sets.tolist()):
        taint = first_untolerated(pod, cluster.taint_sets[number])
        if taint is not None:
            reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
            found.append(Refused(reason, nodes[sets == number], False))
    return found


TAINTS = Filter(passes, refusals)
