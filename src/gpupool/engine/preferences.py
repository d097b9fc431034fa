"""preferences: the score of each node by preferred affinity, soft taints and soft spread.

Each score is scaled to 0..100 over the given nodes and weighted as in kube-scheduler. The policy
decides only among the nodes with the highest score.
"""

import math

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.filters.domains import by_domain
from gpupool.engine.filters.node_affinity import term_matches
from gpupool.engine.filters.spread import counted_nodes, finder_of
from gpupool.engine.filters.taints import by_taints
from gpupool.engine.pod_index import Bond, Finder, look_of
from gpupool.engine.policies.policy import Ints
from kubeclient.placement import Effect, Taint

_FULL = 100
_TAINTS_WEIGHT, _AFFINITY_WEIGHT, _SPREAD_WEIGHT, _PODS_WEIGHT = 3, 2, 2, 2


def has_preferences(pod: PodRequest, cluster: ClusterModel) -> bool:
    """Whether preferences could matter for this pod. Soft taints: see `ShapeVerdict`."""
    return bool(pod.preferred or pod.near or pod.spreads) or cluster.index.concerns(pod)


def preferences(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Ints:
    total = np.zeros(len(nodes), dtype=np.int64)
    if pod.preferred:
        total += _AFFINITY_WEIGHT * _up_to_full(_liked_nodes(pod, cluster, nodes))
    total -= _TAINTS_WEIGHT * _up_to_full(_soft_taints(pod, cluster, nodes))
    total += _SPREAD_WEIGHT * _evenness(pod, cluster, nodes)
    liked = _liked_pods(pod, cluster, nodes)
    # From the least liked node on, as kube-scheduler does: weights of anti-affinity are negative.
    return total + _PODS_WEIGHT * _up_to_full(liked - liked.min(initial=liked.max(initial=0)))


def _up_to_full(scores: Ints) -> Ints:
    most = int(scores.max(initial=0))
    return scores * _FULL // most if most > 0 else np.zeros_like(scores)


def _liked_nodes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Ints:
    total = np.zeros(len(nodes), dtype=np.int64)
    for weight, term in pod.preferred:
        total += weight * term_matches(cluster, term, nodes)
    return total


def _soft_taints(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Ints:
    def unwelcome(taints: tuple[Taint, ...]) -> int:
        return sum(
            taint.effect == Effect.PREFER_NO_SCHEDULE
            and not any(toleration.tolerates(taint) for toleration in pod.tolerations)
            for taint in taints
        )

    return by_taints(cluster, nodes, unwelcome)


def _evenness(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Ints:
    """0 to 100, by kube-scheduler's formula: the fewer matching pods in the node's domains, the
    higher. Without one of the labels a node gets 0.

    Counts of a constraint with many domains are small, so they weigh more: by the logarithm of the
    number of domains.
    """
    scores = np.zeros(len(nodes), dtype=np.int64)
    soft = tuple(spread for spread in pod.spreads if not spread.required)
    labelled = np.full(len(nodes), bool(soft))
    for spread in soft:
        labelled &= cluster.label(spread.topology_key)[nodes] != 0
    if not labelled.any():
        return scores
    nodes = nodes[labelled]
    crowd = np.zeros(len(nodes))
    for spread in soft:
        counted = counted_nodes(pod, cluster, spread, soft)
        counts = cluster.found(finder_of(pod, spread))
        totals = by_domain(cluster, spread.topology_key, counts, counted)
        domains = cluster.label(spread.topology_key)[nodes]
        weight = math.log(len(np.unique(domains)) + 2)
        crowd += totals[domains] * weight + (spread.max_skew - 1)
    rounded = np.floor(crowd + 0.5).astype(np.int64)
    most, least = int(rounded.max()), int(rounded.min())
    scores[labelled] = _FULL * (most + least - rounded) // most if most else _FULL
    return scores


def _liked_pods(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Ints:
    total = np.zeros(len(nodes), dtype=np.int64)
    for weight, term in pod.near:
        counts = cluster.found(Finder((look_of(term),), terminating=True))
        key = term.topology_key
        total += weight * by_domain(cluster, key, counts)[cluster.label(key)[nodes]]
    for carried, counts in cluster.index.carried_about(pod):
        if carried.bond is Bond.WEIGHS:
            key = carried.term.topology_key
            total += carried.weight * by_domain(cluster, key, counts)[cluster.label(key)[nodes]]
    return total
