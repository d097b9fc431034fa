"""Row: what one policy makes of every node for pods of one shape, and up to which change."""

from dataclasses import dataclass

import numpy as np

from gpupool.core.gpu import GpuAsk
from gpupool.core.pods import PodRequest
from gpupool.engine.columns import Bools
from gpupool.engine.policies.policy import Ask, Ints, Policy

NEVER = int(np.iinfo(np.int64).max)  # the cost of a node that cannot take the pod


@dataclass(slots=True)
class Row:
    pod: PodRequest  # any one of its shape
    policy: Policy
    ask: Ask
    need: Ints  # (R, 1): of each resource that the columns count
    needs: list[tuple[int, int]]  # the same, as (row, amount) of what it asks something of
    whole: int  # cards at a time
    shares: tuple[GpuAsk, ...]
    allowed: Bools  # by what the nodes are, whatever is held of them
    costs: Ints
    changes: int  # position in the log of all changes
    node_changes: int  # position in the log of nodes' own changes
    has_soft_taints: bool = False
