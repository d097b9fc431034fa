"""card_summary: how near the cluster comes to what a pod asks of GPUs, in one sentence.

Only of nodes that are open to the pod; what is said of nodes stands in kube-scheduler's words.
"""

import numpy as np

from gpupool.core.gpu import GpuAsk
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import Cluster
from gpupool.engine.filters import OF_THE_NODE
from gpupool.engine.filters.gpus import allows_mode
from gpupool.engine.policies.policy import Ints


def card_summary(cluster: Cluster, pod: PodRequest) -> str:
    """Empty where cards are not the matter, or no node with cards is open to the pod."""
    if not pod.gpus or pod.waits_for:
        return ""
    nodes = _open_nodes(cluster, pod)
    ask = max(pod.gpus, key=lambda each: (each.whole, each.units * each.cards, each.percent))
    words = _nearest(cluster, ask, nodes) if len(nodes) else ""
    return f"GPUs: {words}." if words else ""


def _open_nodes(cluster: Cluster, pod: PodRequest) -> Ints:
    nodes = np.flatnonzero(cluster.columns.has_cards)
    for filter_ in OF_THE_NODE:
        nodes = nodes[filter_.passes(pod, cluster, nodes)]
    return nodes[allows_mode(pod, cluster, nodes)]


def _nearest(cluster: Cluster, ask: GpuAsk, nodes: Ints) -> str:
    """Empty: some node has what is asked for."""
    columns = cluster.columns
    cards = sum(len(cluster.at(int(node)).cards) for node in nodes)
    if ask.whole:
        return _counted(f"of {cards} free", columns.whole_free[nodes], ask.whole)
    roomy = columns.card_free.take(nodes, axis=1) >= ask.units
    if not roomy.any():
        most = int(columns.largest_free[nodes].max())
        return f"none of {cards} has {ask.units} units free, the best has {most}"
    fits = roomy & (columns.card_compute.take(nodes, axis=1) >= ask.percent)
    wanted = f"{ask.units} units" + (f" and {ask.percent} % of compute" if ask.percent else "")
    return _counted(f"of {cards} with {wanted} free", fits.sum(axis=0), ask.cards)


def _counted(words: str, by_node: Ints, wanted: int) -> str:
    most = int(by_node.max())
    if most >= wanted:
        return ""
    return f"{int(by_node.sum())} {words}, at most {most} on one node"
