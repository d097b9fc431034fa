"""Short filters on node objects: a node that is named, a cordoned node, volumes within reach."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import single_reason
from gpupool.engine.filters.node_affinity import any_term
from gpupool.engine.policies.policy import Ints
from kubeclient.placement import Effect, NodeTerm, Taint

WRONG_NAME = "node(s) didn't match the requested node name"
CORDONED = "node(s) were unschedulable"
OUT_OF_REACH = "node(s) had volume node affinity conflict"
OTHER_ZONE = "node(s) had no available volume zone"
_CORDON = Taint("node.kubernetes.io/unschedulable", "", Effect.NO_SCHEDULE)


def _is_named(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    """A pod that names its node fits on no other."""
    if not pod.node_name:
        return np.ones(len(nodes), dtype=np.bool_)
    state = cluster.state(pod.node_name)
    wanted: Bools = nodes == (state.index if state else -1)
    return wanted


def _is_open(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    """Cordoned nodes take only pods that tolerate the taint of a cordon."""
    if any(toleration.tolerates(_CORDON) for toleration in pod.tolerations):
        return np.ones(len(nodes), dtype=np.bool_)
    open_: Bools = ~cluster.columns.unschedulable[nodes]
    return open_


def _reaches_volumes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    return _all_of(pod.volume_terms, cluster, nodes)


def _is_in_zone(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    return _all_of(pod.volume_zones, cluster, nodes)


def _all_of(volumes: tuple[tuple[NodeTerm, ...], ...], cluster: ClusterModel, nodes: Ints) -> Bools:
    allowed = np.ones(len(nodes), dtype=np.bool_)
    for terms in volumes:
        allowed &= any_term(cluster, terms, nodes)
    return allowed


NODE_NAME = single_reason(_is_named, WRONG_NAME, curable=False)
UNSCHEDULABLE = single_reason(_is_open, CORDONED, curable=False)
VOLUMES = single_reason(_reaches_volumes, OUT_OF_REACH, curable=False)
VOLUME_ZONES = single_reason(_is_in_zone, OTHER_ZONE, curable=False)
