"""Taints that the pod does not tolerate. Evaluated once for each different set of taints."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.policies.policy import Ints
from kubeclient.placement import Effect, Taint


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    good = np.array(
        [first_untolerated(pod, taints) is None for taints in cluster.taint_sets], dtype=np.bool_
    )
    allowed: Bools = good[cluster.columns.taints[nodes]]
    return allowed


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
    for taints, number in cluster.taint_sets.items():
        taint = first_untolerated(pod, taints)
        if taint is not None and (sets == number).any():
            reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
            found.append(Refused(reason, nodes[sets == number], False))
    return found


TAINTS = Filter(passes, refusals)
