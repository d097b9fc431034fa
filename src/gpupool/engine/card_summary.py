"""card_summary: how near the cluster comes to what a pod asks of GPUs, in one sentence.

Only of nodes that are open to the pod; what is said of nodes stands in kube-scheduler's words.
"""

import numpy as np

from gpupool.core.gpu import GpuAsk
from gpupool.core.request import PodRequest
from gpupool.engine.cluster import Cluster
from gpupool.engine.filters import OF_THE_NODE
from gpupool.engine.filters.gpus import allows_mode
from gpupool.engine.policies.policy import Ints


def card_summary(cluster: Cluster, pod: PodRequest) -> str:
    """Empty where there is nothing to say: no GPUs asked for, or no node with cards open to it."""
    if not pod.gpus:
        return ""
    nodes = _open_nodes(cluster, pod)
    if not len(nodes):
        return ""
    ask = max(pod.gpus, key=lambda each: (each.whole, each.units * each.cards, each.percent))
    cards = sum(len(cluster.at(int(node)).cards) for node in nodes)
    return f"GPUs: {_nearest(cluster, ask, nodes)} (of {cards})."


def _open_nodes(cluster: Cluster, pod: PodRequest) -> Ints:
    nodes = np.flatnonzero(cluster.columns.has_cards)
    for filter_ in OF_THE_NODE:
        nodes = nodes[filter_.passes(pod, cluster, nodes)]
    return nodes[allows_mode(pod, cluster, nodes)]


def _nearest(cluster: Cluster, ask: GpuAsk, nodes: Ints) -> str:
    columns = cluster.columns
    if ask.whole:
        free = columns.whole_free[nodes]
        return f"{int(free.sum())} are free, {int(free.max())} of them on one node"
    roomy = columns.card_free.take(nodes, axis=1) >= ask.units
    if not roomy.any():
        most = int(columns.largest_free[nodes].max())
        return f"none has {ask.units} units free, the best has {most}"
    fits = roomy & (columns.card_compute.take(nodes, axis=1) >= ask.percent)
    best = int(fits.sum(axis=0).max())
    wanted = f"{ask.units} units" + (f" and {ask.percent} % of compute" if ask.percent else "")
    return f"{int(fits.sum())} have {wanted} free, {best} of them on one node"
