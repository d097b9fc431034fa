"""FILTERS: each file one rule by which nodes cannot take a pod, in kube-scheduler's words. Pure.

Three kinds, by what a verdict depends on: the node as it is (kept until the node changes), what is
held of the node (kept until that changes), and pods elsewhere (judged for each decision).
"""

from gpupool.engine.filters.filter import Filter
from gpupool.engine.filters.gpus import GPUS
from gpupool.engine.filters.host_ports import HOST_PORTS
from gpupool.engine.filters.node_affinity import NODE_AFFINITY
from gpupool.engine.filters.node_name import NODE_NAME
from gpupool.engine.filters.pod_affinity import POD_AFFINITY
from gpupool.engine.filters.resources import RESOURCES
from gpupool.engine.filters.spread import SPREAD
from gpupool.engine.filters.taints import TAINTS
from gpupool.engine.filters.unschedulable import UNSCHEDULABLE
from gpupool.engine.filters.volumes import VOLUMES

# In kube-scheduler's order: the first filter that refuses a node gives the reasons.
FILTERS: tuple[Filter, ...] = (
    UNSCHEDULABLE,
    NODE_NAME,
    TAINTS,
    NODE_AFFINITY,
    HOST_PORTS,
    RESOURCES,
    GPUS,
    VOLUMES,
    SPREAD,
    POD_AFFINITY,
)
OF_THE_NODE: tuple[Filter, ...] = (UNSCHEDULABLE, NODE_NAME, TAINTS, NODE_AFFINITY, VOLUMES)
OF_OTHER_PODS: tuple[Filter, ...] = (SPREAD, POD_AFFINITY)
