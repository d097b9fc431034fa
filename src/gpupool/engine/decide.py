"""decide: a node and cards for a pod, or why there is none. Changes nothing but caches.

    decide(cluster, pod, policy)              any node
    decide_on(cluster, pod, policy, names)    one of these nodes
    decide_nominated(..., node)               this node, else any node
    feasible(cluster, pod, policy, nodes)     all of these nodes that fit, for `candidates.py`

The caller must hold the decision (`ClusterModel.hold`) before it asks for the next one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpupool.core.gpu import Allocation, CardPlacement
from gpupool.core.pods import PodRequest
from gpupool.engine.cards import (
    NONE_CLOSED,
    allocation_of_one,
    allocation_on,
    chooses_cards,
    closed_cards,
)
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.explain import message_of
from gpupool.engine.filters import OF_OTHER_PODS
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ints, Policy
from gpupool.engine.preferences import has_preferences, preferences
from gpupool.engine.verdict_cache import NEVER, ShapeVerdict
from gpupool.engine.verdicts import best_node, catch_up_with_holds, verdict_about, verdict_of

_BY_PLACEMENT = {
    CardPlacement.BINPACK: POLICIES["best-fit"](Mix()),
    CardPlacement.SPREAD: POLICIES["spread"](Mix()),
}


class Placement(NamedTuple):
    node: str
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The message is made when it is read, from the state of the cluster at that time."""

    cluster: ClusterModel
    pod: PodRequest

    @property
    def message(self) -> str:
        return message_of(self.cluster, self.pod)


def decide(cluster: ClusterModel, pod: PodRequest, policy: Policy) -> Placement | Unschedulable:
    if pod.unsupported or pod.waits_for:
        return Unschedulable(cluster, pod)
    policy = policy_for(pod, policy)
    verdict = verdict_about(cluster, pod, policy)
    if depends_on_other_pods(cluster, pod, verdict):
        catch_up_with_holds(cluster, verdict)
        nodes = _passing(cluster, pod, verdict, cluster.all_nodes())
        return _first_that_works(
            cluster, pod, verdict, _ranked(cluster, pod, verdict.totals(policy), nodes)
        )
    while True:
        node, card = best_node(cluster, verdict, policy)
        if node < 0:
            return Unschedulable(cluster, pod)
        state = cluster.at(node)
        if card >= 0 and state.node.card_placement is None:
            return Placement(state.node.name, allocation_of_one(pod.gpus[0], state, card))
        closed = closed_cards(pod, cluster, state) if pod.card_choice else NONE_CLOSED
        allocation = allocation_on(cluster, pod, state, verdict.policy, verdict.ask, closed)
        if allocation is not None:
            return Placement(state.node.name, allocation)
        # The filters let the node pass, but no set of cards fits all containers. Remember that in
        # the cache until the node changes, or every decision would search it again.
        verdict.rule_out(node)


def decide_on(
    cluster: ClusterModel, pod: PodRequest, policy: Policy, names: Sequence[str]
) -> Placement | Unschedulable:
    if pod.unsupported or pod.waits_for:
        return Unschedulable(cluster, pod)
    policy = policy_for(pod, policy)
    verdict = verdict_of(cluster, pod, policy)
    alone = not depends_on_other_pods(cluster, pod, verdict)
    if (
        alone and len(names) == 1
    ):  # nothing to compare, and kube-scheduler binds every pod like this
        return _on_one(cluster, pod, verdict, names[0])
    nodes = in_order(cluster.indexes(names))
    if alone:
        return _first_that_works(cluster, pod, verdict, _by_cost(verdict, policy, nodes))
    nodes = _passing(cluster, pod, verdict, nodes)
    return _first_that_works(
        cluster, pod, verdict, _ranked(cluster, pod, verdict.totals(policy), nodes)
    )


def decide_nominated(
    cluster: ClusterModel, pod: PodRequest, policy: Policy, nominated: str
) -> Placement | Unschedulable:
    """The nominated node first, as in kube-scheduler: victims were evicted there for this pod."""
    if nominated:
        decision = decide_on(cluster, pod, policy, (nominated,))
        if isinstance(decision, Placement):
            return decision
    return decide(cluster, pod, policy)


def feasible(cluster: ClusterModel, pod: PodRequest, policy: Policy, nodes: Ints) -> Ints:
    """The indexes of those `nodes` that fit, best first."""
    if pod.unsupported or pod.waits_for:
        return nodes[:0]
    policy = policy_for(pod, policy)
    verdict = verdict_of(cluster, pod, policy)
    nodes = _passing(cluster, pod, verdict, nodes)
    if len(nodes):
        nodes = _sorted(verdict.totals(policy), nodes, preferences(pod, cluster, nodes))
    # For one container with GPUs the filters are exact. Only these pods can pass them and still
    # find no cards.
    if len(pod.gpus) > 1 or pod.same_card or pod.different_card:
        works = [_allocation(cluster, pod, verdict, int(node)) is not None for node in nodes]
        nodes = nodes[np.array(works, dtype=np.bool_)]
    return nodes


def in_order(indexes: Ints) -> Ints:
    """Sorted, each index once, without -1 (unknown node)."""
    # One entry more than there are indexes: -1 leads to the last one, which is cut off.
    there = np.zeros(int(indexes.max(initial=-1)) + 2, dtype=np.bool_)
    there[indexes] = True
    return np.flatnonzero(there[:-1])


def policy_for(pod: PodRequest, policy: Policy) -> Policy:
    """The card placement that the pod asks for goes before the policy of the cluster."""
    return _BY_PLACEMENT[pod.card_placement] if pod.card_placement and pod.gpus else policy


def depends_on_other_pods(cluster: ClusterModel, pod: PodRequest, verdict: ShapeVerdict) -> bool:
    """Whether the decision depends on more than each node's own room."""
    return (
        # Required spreads are covered as well: `has_preferences` is true for every spread.
        verdict.nodes.has_soft_taints
        or bool(pod.affinity or pod.anti_affinity or pod.same_card or pod.different_card)
        or has_preferences(pod, cluster)
    )


def _on_one(
    cluster: ClusterModel, pod: PodRequest, verdict: ShapeVerdict, name: str
) -> Placement | Unschedulable:
    state = cluster.state(name)
    if state is None or verdict.costs.item(state.index) == NEVER:
        return Unschedulable(cluster, pod)
    return _first_that_works(cluster, pod, verdict, (state.index,))


def _passing(cluster: ClusterModel, pod: PodRequest, verdict: ShapeVerdict, nodes: Ints) -> Ints:
    nodes = nodes[verdict.costs[nodes] != NEVER]
    for filter_ in OF_OTHER_PODS:
        nodes = nodes[filter_.passes(pod, cluster, nodes)]
    return nodes


def _ranked(cluster: ClusterModel, pod: PodRequest, costs: Ints, nodes: Ints) -> Iterator[int]:
    if not len(nodes):
        return
    liked = preferences(pod, cluster, nodes)
    most = nodes[liked == liked.max()]
    yield int(most[costs[most].argmin()])  # nearly always fits: sort only if not
    # The sort is stable, so its first node is the one that was just yielded.
    yield from (int(node) for node in _sorted(costs, nodes, liked)[1:])


def _by_cost(verdict: ShapeVerdict, policy: Policy, nodes: Ints) -> Iterator[int]:
    """As `_ranked`, for pods that depend on no other pods."""
    totals = verdict.totals_of(policy, nodes)
    for _ in range(len(nodes)):
        least = int(totals.argmin())
        if totals[least] == NEVER:
            return
        yield int(nodes[least])
        totals[least] = NEVER


def _sorted(costs: Ints, nodes: Ints, liked: Ints) -> Ints:
    order: Ints = np.lexsort((costs[nodes], -liked))
    return nodes[order]


def _first_that_works(
    cluster: ClusterModel, pod: PodRequest, verdict: ShapeVerdict, nodes: Iterable[int]
) -> Placement | Unschedulable:
    for node in nodes:
        allocation = _allocation(cluster, pod, verdict, node)
        if allocation is not None:
            return Placement(cluster.at(node).node.name, allocation)
    return Unschedulable(cluster, pod)


def _allocation(
    cluster: ClusterModel, pod: PodRequest, verdict: ShapeVerdict, node: int
) -> Allocation | None:
    state = cluster.at(node)
    closed = closed_cards(pod, cluster, state) if chooses_cards(pod) else NONE_CLOSED
    return allocation_on(cluster, pod, state, verdict.policy, verdict.ask, closed)
