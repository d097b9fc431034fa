"""Which nodes pass the filters on node objects: labels, taints, names. Shared by shapes of pods.

Many shapes differ only in what they ask for, and a new policy makes all verdicts anew. What nodes
allow follows from neither, so it is kept here, and brought up to date when nodes change.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters import OF_THE_NODE
from gpupool.engine.filters.gpus import allows_mode
from gpupool.engine.kernel import BLOCK
from gpupool.engine.policies.policy import Ints
from kubeclient.placement import Effect

MOST_KEPT = 256  # of a cluster; verdicts that are in use keep theirs


@dataclass(slots=True)
class AllowedNodes:
    pod: PodRequest  # any pod for which this holds
    nodes: Bools
    bits: NDArray[np.uint16]  # the same, a bit for each node: for `kernel.py`
    changes: int  # valid up to this position of `ClusterModel.node_changes`
    has_soft_taints: bool = False  # some node has a PreferNoSchedule taint that is not tolerated


def allowed_nodes(cluster: ClusterModel, pod: PodRequest) -> AllowedNodes:
    key = _key(pod)
    found = cluster.allowed.get(key)
    if found is None:
        size, position = cluster.columns.size, cluster.node_changes.position
        bits = np.zeros(size // BLOCK, dtype=np.uint16)
        found = AllowedNodes(pod, np.zeros(size, dtype=np.bool_), bits, position)
        _judge(cluster, found, cluster.all_nodes())
        if len(cluster.allowed) >= MOST_KEPT:
            del cluster.allowed[next(iter(cluster.allowed))]
        cluster.allowed[key] = found
    else:
        catch_up(cluster, found)
    return found


def catch_up(cluster: ClusterModel, allowed: AllowedNodes) -> None:
    """Judge again the nodes that changed."""
    if allowed.changes == cluster.node_changes.position:
        return
    changed = cluster.node_changes.since(allowed.changes)
    allowed.changes = cluster.node_changes.position
    present = cluster.columns.present
    if changed is None:
        allowed.nodes[:] = False
        nodes = np.flatnonzero(present)
    else:
        listed = np.array(list(set(changed)), dtype=np.intp)
        allowed.nodes[listed] = False
        nodes = listed[present[listed]]
    _judge(cluster, allowed, nodes)


def _key(pod: PodRequest) -> Hashable:
    """All that the filters below read of a pod."""
    return (
        pod.node_selector,
        pod.node_terms,
        pod.tolerations,
        pod.node_name,
        pod.runtime_class,
        pod.volume_terms,
        pod.volume_zones,
        bool(pod.gpus),
        any(ask.whole for ask in pod.gpus),
        any(ask.units for ask in pod.gpus),
    )


def _judge(cluster: ClusterModel, allowed: AllowedNodes, nodes: Ints) -> None:
    pod = allowed.pod
    passing: Bools = np.ones(len(nodes), dtype=np.bool_)
    for filter_ in OF_THE_NODE:
        passing &= filter_.passes(pod, cluster, nodes)
    if pod.gpus:
        passing &= allows_mode(pod, cluster, nodes)
    allowed.nodes[nodes] = passing
    # In place: the kernel knows where they are.
    allowed.bits[:] = np.packbits(allowed.nodes, bitorder="little").view("<u2")
    # Some of these sets may be of nodes that are gone: if it is true without need, a decision only
    # takes longer.
    allowed.has_soft_taints = any(
        taint.effect == Effect.PREFER_NO_SCHEDULE
        and not any(toleration.tolerates(taint) for toleration in pod.tolerations)
        for taints in cluster.taint_sets
        for taint in taints
    )
