"""candidates: which of the listed nodes fit a pod, their scores, and why the others do not fit.

For kube-scheduler, which chooses the node itself. It asks for every pod with thousands of nodes, so
the work is done with vectors over all nodes, not node by node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.decide import feasible, in_order
from gpupool.engine.explain import refusals
from gpupool.engine.policies.policy import Ints, Policy

NOT_KNOWN = "node is not known yet"


@dataclass(frozen=True, slots=True)
class Refusals:
    """Reasons by node name."""

    curable: dict[str, str]  # it may help if pods leave the node
    incurable: dict[str, str]


@dataclass(frozen=True, slots=True)
class Candidates:
    names: Sequence[str]  # as they were listed
    where: Ints  # their indexes; -1: unknown node
    ranked: Ints  # indexes of the nodes that fit, best first

    def __bool__(self) -> bool:
        return len(self.ranked) > 0

    def fitting(self, most: int = 0) -> list[str]:
        """In the order in which they were listed; only the `most` best ones, unless that is 0."""
        kept = self.ranked[:most] if most else self.ranked
        return list(compress(self.names, self._among(kept).tolist()))

    def best(self) -> str:
        return self.names[int(np.flatnonzero(self.where == self.ranked[0])[0])]

    def scores(self, most: int) -> list[int]:
        """A score for each name: `most` for the best node, 0 for the worst and for unfit nodes."""
        count = len(self.ranked)
        by_index = np.zeros(self._size(), dtype=np.intp)
        by_index[self.ranked] = most * (count - np.arange(count)) // max(count, 1)
        scores: list[int] = by_index[self.where].tolist()
        return scores

    def refused(self, cluster: ClusterModel, pod: PodRequest) -> Refusals:
        fits = self._among(self.ranked)
        if fits.all():
            return Refusals({}, {})
        left = self.where[~fits]
        reasons: dict[int, list[str]] = {}
        incurable: set[int] = set()
        for refused in refusals(cluster, pod, in_order(left)):
            nodes = refused.nodes.tolist()
            for index in nodes:
                reasons.setdefault(index, []).append(refused.reason)
            if not refused.curable:
                incurable.update(nodes)
        words = {index: ", ".join(given) for index, given in reasons.items()}
        found = Refusals({}, {})
        for name, index in zip(compress(self.names, (~fits).tolist()), left.tolist(), strict=True):
            by_name = found.incurable if index in incurable else found.curable
            by_name[name] = words.get(index, NOT_KNOWN)
        return found

    def _among(self, indexes: Ints) -> Bools:
        """For each name: whether its index is one of these."""
        by_index = np.zeros(self._size(), dtype=np.bool_)
        by_index[indexes] = True
        found: Bools = by_index[self.where]
        return found

    def _size(self) -> int:
        """One more than the largest index: index -1 (unknown node) leads to that last entry."""
        return int(self.where.max(initial=-1)) + 2


def candidates(
    cluster: ClusterModel, pod: PodRequest, policy: Policy, names: Sequence[str]
) -> Candidates:
    where = cluster.indexes(names)
    return Candidates(names, where, feasible(cluster, pod, policy, in_order(where)))
