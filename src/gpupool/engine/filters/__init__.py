"""FILTERS: the rules by which a node cannot take a pod, with the reasons of kube-scheduler. Pure.

Three kinds, by what the result depends on: the node object (cached until the node changes), what is
held on the node (cached until that changes), and pods on other nodes (evaluated for each decision).
"""

from gpupool.engine.filters.filter import Filter
from gpupool.engine.filters.gpus import GPUS
from gpupool.engine.filters.host_ports import HOST_PORTS
from gpupool.engine.filters.node_affinity import NODE_AFFINITY
from gpupool.engine.filters.node_objects import (
    NODE_NAME,
    UNSCHEDULABLE,
    VOLUME_ZONES,
    VOLUMES,
)
from gpupool.engine.filters.pod_affinity import POD_AFFINITY
from gpupool.engine.filters.resources import RESOURCES
from gpupool.engine.filters.runtime_classes import RUNTIME_CLASSES
from gpupool.engine.filters.spread import SPREAD
from gpupool.engine.filters.taints import TAINTS
from gpupool.engine.filters.volume_limits import VOLUME_LIMITS

# In kube-scheduler's order: the first filter that refuses a node gives the reasons.
FILTERS: tuple[Filter, ...] = (
    UNSCHEDULABLE,
    NODE_NAME,
    TAINTS,
    NODE_AFFINITY,
    RUNTIME_CLASSES,
    HOST_PORTS,
    RESOURCES,
    GPUS,
    VOLUME_LIMITS,
    VOLUMES,
    VOLUME_ZONES,
    SPREAD,
    POD_AFFINITY,
)
OF_THE_NODE: tuple[Filter, ...] = (
    UNSCHEDULABLE,
    NODE_NAME,
    TAINTS,
    NODE_AFFINITY,
    RUNTIME_CLASSES,
    VOLUMES,
    VOLUME_ZONES,
)
OF_OTHER_PODS: tuple[Filter, ...] = (SPREAD, POD_AFFINITY)
