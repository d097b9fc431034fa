"""Volumes that are only within reach of some nodes."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import Cluster
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import single_reason
from gpupool.engine.filters.node_affinity import any_term
from gpupool.engine.policies.policy import Ints

REASON = "node(s) had volume node affinity conflict"


def passes(pod: PodRequest, cluster: Cluster, nodes: Ints) -> Bools:
    allowed = np.ones(len(nodes), dtype=np.bool_)
    for terms in pod.volume_terms:
        allowed &= any_term(cluster, terms, nodes)
    return allowed


VOLUMES = single_reason(passes, REASON, curable=False)
