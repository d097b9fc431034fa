"""verdict_of_one: what a single node costs, in plain numbers: as `verdicts.py` says it of many.

Between two decisions about pods of one shape few nodes change; for few, this is several times
faster than vectors.
"""

import numpy as np

from gpupool.engine.cluster import Cluster
from gpupool.engine.filters.gpus import has_shares
from gpupool.engine.filters.host_ports import is_free
from gpupool.engine.row import NEVER, Row


def verdict_of_one(cluster: Cluster, row: Row, node: int) -> int:
    """Of a pod with GPUs, by a policy that can say it of one node."""
    columns = cluster.columns
    if columns.whole_free.item(node) < row.whole or not row.allowed[node]:
        return NEVER
    for ask in row.shares:
        if columns.largest_free.item(node) < ask.units:
            return NEVER
        if (ask.cards > 1 or ask.percent) and not has_shares(ask, columns, np.array([node]))[0]:
            return NEVER
    free = columns.free
    for at, amount in row.needs:
        if free.item(at, node) < amount:
            return NEVER
    if row.pod.host_ports and not is_free(row.pod, cluster, node):
        return NEVER
    assert row.policy.cost is not None
    return row.policy.cost(columns, row.ask, node)
