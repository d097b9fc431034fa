"""Counts of pods by topology domain: nodes with the same value of a label are one domain."""

import numpy as np

from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.policies.policy import Ints


def by_domain(cluster: ClusterModel, key: str, counts: Ints, within: Bools | None = None) -> Ints:
    """The sum for each domain, indexed by the number of the label's value; index 0 is 0.

    `within`: only these nodes count.
    """
    column = cluster.label(key)
    if within is not None:
        column, counts = column[within], counts[within]
    length = len(cluster.label_numbers(key)) + 1
    totals: Ints = np.bincount(column, weights=counts, minlength=length).astype(np.int64)
    # Nodes without the label are not one domain together, but in none.
    totals[0] = 0
    return totals
