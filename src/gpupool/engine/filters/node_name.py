"""A pod that names its node goes there or nowhere."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import Cluster
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import single_reason
from gpupool.engine.policies.policy import Ints

REASON = "node(s) didn't match the requested node name"


def passes(pod: PodRequest, cluster: Cluster, nodes: Ints) -> Bools:
    if not pod.node_name:
        return np.ones(len(nodes), dtype=np.bool_)
    state = cluster.state(pod.node_name)
    wanted: Bools = nodes == (state.index if state else -1)
    return wanted


NODE_NAME = single_reason(passes, REASON, curable=False)
