"""least_allocated: for pods without GPUs the node with the most left, in percent of what it has.

Among equals the one with the fewest pods, which may ask for nothing and still want room.
"""

import numpy as np

from gpupool.engine.columns import Columns
from gpupool.engine.policies.policy import Ints

_PERCENT = 100
_MOST_PODS = 2**20


def least_allocated(columns: Columns, nodes: Ints) -> Ints:
    cpu = _used_percent(columns.cpu_free[nodes], columns.cpu_total[nodes])
    memory = _used_percent(columns.memory_free[nodes], columns.memory_total[nodes])
    costs: Ints = (cpu + memory) * _MOST_PODS + columns.pods[nodes]
    return costs


def _used_percent(free: Ints, total: Ints) -> Ints:
    """Rounded up; of nothing, all is used."""
    scale = np.maximum(total // _PERCENT, 1)
    used: Ints = _PERCENT - np.minimum(free // scale, _PERCENT)
    return used
