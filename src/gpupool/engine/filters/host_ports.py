"""Host ports: a pod cannot use a port of the node that another pod uses."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import single_reason
from gpupool.engine.policies.policy import Ints

REASON = "node(s) didn't have free ports for the requested pod ports"


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    if not pod.host_ports:
        return np.ones(len(nodes), dtype=np.bool_)
    return np.array([is_free(pod, cluster, int(node)) for node in nodes], dtype=np.bool_)


def is_free(pod: PodRequest, cluster: ClusterModel, node: int) -> bool:
    taken = cluster.at(node).ports
    return not taken or not any(
        mine.collides(theirs) for mine in pod.host_ports for theirs in taken
    )


HOST_PORTS = single_reason(passes, REASON, curable=True)
