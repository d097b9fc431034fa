"""Cordoned nodes take only pods that tolerate it."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import Cluster
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import single_reason
from gpupool.engine.policies.policy import Ints
from kubeclient.placement import Effect, Taint

REASON = "node(s) were unschedulable"
_CORDON = Taint("node.kubernetes.io/unschedulable", "", Effect.NO_SCHEDULE)


def passes(pod: PodRequest, cluster: Cluster, nodes: Ints) -> Bools:
    if any(toleration.tolerates(_CORDON) for toleration in pod.tolerations):
        return np.ones(len(nodes), dtype=np.bool_)
    open_: Bools = ~cluster.columns.unschedulable[nodes]
    return open_


UNSCHEDULABLE = single_reason(passes, REASON, curable=False)
