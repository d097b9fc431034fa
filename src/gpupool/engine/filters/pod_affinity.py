"""Required pod affinity and anti-affinity: of the pod itself, and of the pods that are held."""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.domains import by_domain
from gpupool.engine.filters.filter import Filter, Refused
from gpupool.engine.pod_index import Bond, Finder, look_of
from gpupool.engine.policies.policy import Ints

NOT_NEAR = "node(s) didn't match pod affinity rules"
TOO_NEAR = "node(s) didn't match pod anti-affinity rules"
KEPT_OFF = "node(s) didn't satisfy existing pods anti-affinity rules"


def near_enough(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    """A held pod that matches all terms must be in the domain of each term.

    Exception, as in kube-scheduler: if no such pod exists and the pod matches its own terms, it is
    the first of a group, and may go to any node with the labels.
    """
    allowed = np.ones(len(nodes), dtype=np.bool_)
    if not pod.affinity:
        return allowed
    # Terminating pods count, as in kube-scheduler; only topology spread ignores them.
    finder = Finder(tuple(look_of(term) for term in pod.affinity), terminating=True)
    counts = cluster.found(finder)
    labelled = np.ones(len(nodes), dtype=np.bool_)
    somewhere = False
    for term in pod.affinity:
        domain = cluster.label(term.topology_key)[nodes]
        labelled &= domain != 0
        totals = by_domain(cluster, term.topology_key, counts)
        somewhere |= bool(totals.any())
        allowed &= totals[domain] > 0
    if not somewhere and cluster.index.finds(finder, pod):
        return labelled
    return allowed & labelled


def far_enough(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    allowed = np.ones(len(nodes), dtype=np.bool_)
    for term in pod.anti_affinity:
        counts = cluster.found(Finder((look_of(term),), terminating=True))
        totals = by_domain(cluster, term.topology_key, counts)
        allowed &= totals[cluster.label(term.topology_key)[nodes]] == 0
    return allowed


def welcome(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    """No held pod in the domain has a required anti-affinity against this pod."""
    allowed = np.ones(len(nodes), dtype=np.bool_)
    for carried, counts in cluster.index.carried_about(pod):
        if carried.bond is Bond.KEEPS_OFF:
            key = carried.term.topology_key
            allowed &= by_domain(cluster, key, counts)[cluster.label(key)[nodes]] == 0
    return allowed


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    return (
        near_enough(pod, cluster, nodes)
        & far_enough(pod, cluster, nodes)
        & welcome(pod, cluster, nodes)
    )


def refusals(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> list[Refused]:
    """The first of the three that refuses a node, in kube-scheduler's order."""
    found = []
    for rule, reason, curable in (
        (near_enough, NOT_NEAR, False),
        (far_enough, TOO_NEAR, True),
        (welcome, KEPT_OFF, True),
    ):
        fine = rule(pod, cluster, nodes)
        if not fine.all():
            found.append(Refused(reason, nodes[~fine], curable))
        nodes = nodes[fine]
    return found


POD_AFFINITY = Filter(passes, refusals)
