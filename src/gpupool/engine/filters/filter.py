"""Filter: two functions over nodes, which are given by their indexes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.policies.policy import Ints


class Refused(NamedTuple):
    reason: str
    nodes: Ints
    curable: bool  # whether it may help if pods leave the node


@dataclass(frozen=True, slots=True)
class Filter:
    passes: Callable[[PodRequest, ClusterModel, Ints], Bools]
    # Called only with nodes that do not pass. A node may be refused for several reasons.
    refusals: Callable[[PodRequest, ClusterModel, Ints], list[Refused]]


def single_reason(
    passes: Callable[[PodRequest, ClusterModel, Ints], Bools], reason: str, *, curable: bool
) -> Filter:
    return Filter(passes, lambda pod, cluster, nodes: [Refused(reason, nodes, curable)])
