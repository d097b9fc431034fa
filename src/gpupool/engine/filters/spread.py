"""Required topology spread: how many more pods a domain may have than the emptiest one."""

from collections.abc import Iterable

import numpy as np

from gpupool.core.pods import PodRequest, Spread
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters import node_affinity, taints
from gpupool.engine.filters.domains import by_domain
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.pod_index import Finder, Look
from gpupool.engine.policies.policy import Ints

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


def finder_of(pod: PodRequest, spread: Spread) -> Finder:
    """Pods of the same namespace that are not terminating."""
    return Finder((Look(spread.selector, (pod.namespace,), None),), terminating=False)


def counted_nodes(
    pod: PodRequest, cluster: ClusterModel, spread: Spread, spreads: tuple[Spread, ...]
) -> Bools:
    """Mask of the nodes that count: they have all labels, and the node policies allow them."""
    counted = cluster.columns.present.copy()
    for each in spreads:
        counted &= cluster.label(each.topology_key) != 0
    nodes = np.flatnonzero(counted)
    if spread.honors_affinity:
        counted[nodes] &= node_affinity.passes(pod, cluster, nodes)
    if spread.honors_taints:
        counted[nodes] &= taints.passes(pod, cluster, nodes)
    return counted


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    allowed = np.ones(len(nodes), dtype=np.bool_)
    required = tuple(spread for spread in pod.spreads if spread.required)
    for spread in required:
        domain = cluster.label(spread.topology_key)[nodes]
        allowed &= (domain != 0) & ~_ahead(pod, cluster, spread, required)[domain]
    return allowed


def _ahead(
    pod: PodRequest, cluster: ClusterModel, spread: Spread, required: tuple[Spread, ...]
) -> Bools:
    """The domains in which one more pod would be too many."""
    finder = finder_of(pod, spread)
    counted = counted_nodes(pod, cluster, spread, required)
    totals = by_domain(cluster, spread.topology_key, cluster.found(finder), counted)
    # Not np.unique, which imports a large module when it is first called.
    domains = np.flatnonzero(np.bincount(cluster.label(spread.topology_key)[counted]))
    if not len(domains):
        return np.zeros(len(totals), dtype=np.bool_)
    # As in Kubernetes: with fewer domains than minDomains the minimum counts as 0.
    least = int(totals[domains].min()) if len(domains) >= spread.min_domains else 0
    itself = 1 if cluster.index.finds(finder, pod) else 0
    ahead: Bools = totals + itself - least > spread.max_skew
    return ahead


def counts_any(pod: PodRequest, cluster: ClusterModel, others: Iterable[PodRequest]) -> bool:
    """Whether a required spread of the pod counts one of the others."""
    finders = [finder_of(pod, spread) for spread in pod.spreads if spread.required]
    return any(cluster.index.finds(finder, other) for other in others for finder in finders)


def refusals(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> list[Refused]:
    labelled = np.ones(len(nodes), dtype=np.bool_)
    for spread in pod.spreads:
        if spread.required:
            labelled &= cluster.label(spread.topology_key)[nodes] != 0
    found = [
        Refused(NO_LABEL, nodes[~labelled], False),
        Refused(UNEVEN, nodes[labelled], True),
    ]
    return [refused for refused in found if len(refused.nodes)]


SPREAD = Filter(passes, refusals)
