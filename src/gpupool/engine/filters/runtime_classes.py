"""Runtime classes: a pod's class is fixed when it is created, so it must suit the node.

Where NVIDIA's runtime comes by a class, a pod without that class would start without its card.
Where the container runtime has no handler of NVIDIA, a pod that names one would never start.
"""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.core.ways import Way
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.policies.policy import Ints


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    # Once for each different value, not for each node: nodes are of few kinds.
    if not pod.gpus:
        return np.ones(len(nodes), dtype=np.bool_)
    wanted = pod.runtime_class
    suit = np.array([ways is None or ways.suits(wanted) for ways in cluster.columns.ways])
    found: Bools = suit[cluster.columns.way[nodes]]
    return found


def refusals(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> list[Refused]:
    numbers = cluster.columns.way[nodes]
    found = []
    for number in dict.fromkeys(numbers.tolist()):
        ways = cluster.columns.ways[number]
        assert ways is not None  # such a node passes
        reason = (
            f"node(s) gave GPUs only to pods with runtimeClassName {ways.runtime_class}"
            if ways.chosen is Way.RUNTIME_CLASS
            else f"node(s) had no runtime class {pod.runtime_class} for GPUs"
        )
        found.append(Refused(reason, nodes[numbers == number], False))
    return found


RUNTIME_CLASSES = Filter(passes, refusals)
