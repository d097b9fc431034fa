"""decide: a node and cards for a pod, or why there is none. Pure: it changes nothing that counts.

    decide(cluster, pod, policy)              any node
    decide_on(cluster, pod, policy, names)    one of these
    feasible(cluster, pod, policy, names)     all of these that would do, with what they cost

The caller holds what was decided (`Cluster.hold`) before the next decision.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpupool.core.gpu import Allocation, CardPlacement
from gpupool.core.request import PodRequest
from gpupool.engine.card_groups import closed_cards
from gpupool.engine.cards import allocation_on
from gpupool.engine.cluster import Cluster
from gpupool.engine.explain import message_of
from gpupool.engine.filters import OF_OTHER_PODS
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ints, Policy
from gpupool.engine.preferences import has_preferences, preferences
from gpupool.engine.row import NEVER, Row
from gpupool.engine.verdicts import row_of

_BY_PLACEMENT = {
    CardPlacement.BINPACK: POLICIES["best-fit"](Mix()),
    CardPlacement.SPREAD: POLICIES["spread"](Mix()),
}


class Placement(NamedTuple):
    node: str
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The words are made when they are asked for, from the cluster as it is then."""

    cluster: Cluster
    pod: PodRequest

    @property
    def message(self) -> str:
        return message_of(self.cluster, self.pod)


@dataclass(frozen=True, slots=True)
class Candidate:
    node: str
    cost: int  # lower is better; comparable within one answer


def decide(cluster: Cluster, pod: PodRequest, policy: Policy) -> Placement | Unschedulable:
    if pod.unsupported or pod.waits_for:
        return Unschedulable(cluster, pod)
    row = row_of(cluster, pod, policy_for(pod, policy))
    if looks_elsewhere(cluster, pod, row):
        return _first_that_works(cluster, pod, row, _ranked(cluster, pod, row))
    costs = row.costs
    while True:
        node = int(costs.argmin())
        if costs[node] == NEVER:
            return Unschedulable(cluster, pod)
        state = cluster.at(node)
        allocation = allocation_on(cluster, pod, state, row.policy, row.ask)
        if allocation is not None:
            return Placement(state.node.name, allocation)
        costs[node] = NEVER  # until something changes there


def decide_on(
    cluster: Cluster, pod: PodRequest, policy: Policy, names: Sequence[str]
) -> Placement | Unschedulable:
    if pod.unsupported or pod.waits_for:
        return Unschedulable(cluster, pod)
    row = row_of(cluster, pod, policy_for(pod, policy))
    wanted = _indexes(cluster, names)
    ranked = (node for node in _ranked(cluster, pod, row) if node in wanted)
    return _first_that_works(cluster, pod, row, ranked)


def feasible(
    cluster: Cluster, pod: PodRequest, policy: Policy, names: Iterable[str]
) -> list[Candidate]:
    """Best first."""
    if pod.unsupported or pod.waits_for:
        return []
    row = row_of(cluster, pod, policy_for(pod, policy))
    wanted = _indexes(cluster, names)
    fitting = [n for n in _ranked(cluster, pod, row) if n in wanted]
    if len(pod.gpus) > 1 or pod.same_card or pod.different_card:
        fitting = [n for n in fitting if _allocation(cluster, pod, row, n) is not None]
    return [Candidate(cluster.at(node).node.name, at) for at, node in enumerate(fitting)]


def policy_for(pod: PodRequest, policy: Policy) -> Policy:
    """What the pod itself asks for goes before what the cluster is run with."""
    return _BY_PLACEMENT[pod.card_placement] if pod.card_placement and pod.gpus else policy


def looks_elsewhere(cluster: Cluster, pod: PodRequest, row: Row) -> bool:
    """Whether the decision depends on more than each node's own room."""
    return (
        row.has_soft_taints
        or bool(pod.affinity or pod.anti_affinity or pod.same_card or pod.different_card)
        or has_preferences(pod, cluster)
    )


def _ranked(cluster: Cluster, pod: PodRequest, row: Row) -> Iterator[int]:
    nodes = np.flatnonzero(row.costs != NEVER)
    for filter_ in OF_OTHER_PODS:
        nodes = nodes[filter_.passes(pod, cluster, nodes)]
    if not len(nodes):
        return
    liked = preferences(pod, cluster, nodes)
    most = nodes[liked == liked.max()]
    yield int(most[row.costs[most].argmin()])  # nearly always the answer: no need to sort
    order: Ints = np.lexsort((row.costs[nodes], -liked))
    yield from (int(node) for node in nodes[order[1:]])


def _first_that_works(
    cluster: Cluster, pod: PodRequest, row: Row, nodes: Iterable[int]
) -> Placement | Unschedulable:
    for node in nodes:
        allocation = _allocation(cluster, pod, row, node)
        if allocation is not None:
            return Placement(cluster.at(node).node.name, allocation)
    return Unschedulable(cluster, pod)


def _allocation(cluster: Cluster, pod: PodRequest, row: Row, node: int) -> Allocation | None:
    state = cluster.at(node)
    closed: frozenset[int] = frozenset()
    if pod.same_card or pod.different_card:
        closed = closed_cards(pod, cluster, state)
    return allocation_on(cluster, pod, state, row.policy, row.ask, closed)


def _indexes(cluster: Cluster, names: Iterable[str]) -> set[int]:
    states = (cluster.state(name) for name in names)
    return {state.index for state in states if state}
