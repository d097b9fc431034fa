"""Attached volumes: a CSI driver can attach only so many volumes to a node."""

from collections import Counter

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import single_reason
from gpupool.engine.policies.policy import Ints

REASON = "node(s) exceed max volume count"


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    if not pod.attached:
        return np.ones(len(nodes), dtype=np.bool_)
    return np.array([has_slots(pod, cluster, int(node)) for node in nodes], dtype=np.bool_)


def has_slots(pod: PodRequest, cluster: ClusterModel, node: int) -> bool:
    """Drivers without a stated limit can attach any number."""
    state = cluster.at(node)
    limits = state.node.volume_limits
    if not limits:
        return True
    # A volume that a pod on the node uses already is attached once for both.
    more = Counter(each.driver for each in set(pod.attached) if each not in state.volumes)
    # Only drivers of which the pod needs one more: a node over its limit may keep what it has.
    limited = [driver for driver in more if driver in limits]
    if not limited:
        return True
    there = Counter(each.driver for each in state.volumes)
    return all(there[driver] + more[driver] <= limits[driver] for driver in limited)


VOLUME_LIMITS = single_reason(passes, REASON, curable=True)
