"""Packing: the current policy, made again when the mix of pods has changed.

packing = Packing("residue")
packing.count(cluster, pod)                       each pod once, when it first asks for a node
decide(cluster, pod, packing.policy)
"""

from collections.abc import Hashable

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.filters.node_affinity import NODE_AFFINITY
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix, MixLearner
from gpupool.engine.verdicts import ask_of

_MOST_SIZES = 64  # different card sizes that a mix has
# Policies make tables: for each size as many entries as it has units, and as many again as the
# largest size has. A node whose unit is very small must not fill the memory.
_MOST_ENTRIES = 2**20
_MOST_SELECTIONS = 1024  # cached node selections


class Packing:
    def __init__(self, name: str) -> None:
        self.policy = POLICIES[name](Mix())
        self._make = POLICIES[name]
        self._learner = MixLearner()
        self._models: dict[Hashable, tuple[int, ...]] = {}
        self._sizes: tuple[int, ...] = ()
        self._nodes_seen = -1  # position in `ClusterModel.node_changes`

    def count(self, cluster: ClusterModel, pod: PodRequest) -> None:
        if cluster.node_changes.position != self._nodes_seen:
            self._look_at_nodes(cluster)
        self._learner.count(ask_of(pod), self._models_for(cluster, pod))
        if self._learner.is_due:
            self._renew(cluster)

    def _look_at_nodes(self, cluster: ClusterModel) -> None:
        self._nodes_seen = cluster.node_changes.position
        # The selections were made from node labels, which may have changed.
        self._models.clear()
        sizes = card_sizes(cluster)
        # Only for new sizes: a new policy makes all cached costs useless, and a size that is gone
        # does no harm.
        if not set(sizes) <= set(self._sizes):
            self._renew(cluster)

    def _renew(self, cluster: ClusterModel) -> None:
        self._sizes = card_sizes(cluster)
        self.policy = self._make(self._learner.mix(cards_of_model(cluster), self._sizes))

    def _models_for(self, cluster: ClusterModel, pod: PodRequest) -> tuple[int, ...]:
        """The GPU models of the nodes that the pod selects; empty: any."""
        if not pod.gpus or not (pod.node_selector or pod.node_terms):
            return ()
        key = (pod.node_selector, pod.node_terms)
        if key not in self._models:
            if len(self._models) >= _MOST_SELECTIONS:
                self._models.clear()
            self._models[key] = _selected_models(cluster, pod)
        return self._models[key]


def _selected_models(cluster: ClusterModel, pod: PodRequest) -> tuple[int, ...]:
    columns = cluster.columns
    nodes = np.flatnonzero(columns.present & columns.has_cards)
    selected = nodes[NODE_AFFINITY.passes(pod, cluster, nodes)]
    models = np.unique(columns.model[selected])
    if len(models) == len(np.unique(columns.model[nodes])):
        return ()
    return tuple(models.tolist())


def cards_of_model(cluster: ClusterModel) -> tuple[int, ...]:
    columns = cluster.columns
    cards = (columns.card_total > 1).sum(axis=0)
    counts = np.bincount(columns.model, weights=cards, minlength=len(cluster.models))
    return tuple(int(count) for count in counts)


def card_sizes(cluster: ClusterModel) -> tuple[int, ...]:
    """The different sizes of usable cards; only the most frequent if there are too many."""
    totals = cluster.columns.card_total
    sizes, counts = np.unique(totals[totals > 1], return_counts=True)
    chosen: list[int] = []
    for size in sizes[np.argsort(-counts, kind="stable")].tolist():
        wider = [*chosen, size]
        if len(wider) <= _MOST_SIZES and sum(wider) + len(wider) * max(wider) <= _MOST_ENTRIES:
            chosen = wider
    return tuple(sorted(chosen))
