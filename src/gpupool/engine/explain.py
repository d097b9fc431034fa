"""Why a pod fits nowhere: one sentence in the form of kube-scheduler, and reasons by node and card.

Expensive, so it is computed only when somebody reads it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.card_words import card_words
from gpupool.engine.cards import NONE_CLOSED, allocation_on, chooses_cards, closed_cards
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.filters import FILTERS
from gpupool.engine.filters.filter import Refused
from gpupool.engine.kinds import ask_of
from gpupool.engine.node_state import NodeState
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ints

NO_NODES = "no nodes available to schedule pods"
NOT_TOGETHER = "Insufficient GPUs for all containers at once"
NO_SUCH_CARD = "node(s) had no GPU that the pod's card group may use"
# Whether cards fit does not depend on the policy; it only chooses among those that do.
_ANY_POLICY = POLICIES["best-fit"](Mix())


@dataclass(frozen=True, slots=True)
class NodeReasons:
    node: str
    reasons: tuple[str, ...]  # none: the pod would fit
    cards: tuple[str, ...]  # a line for each card of a node that has too little GPU


@dataclass(frozen=True, slots=True)
class NodeList:
    """All nodes in order. The text of a node is made when it is read: few of thousands are."""

    pod: PodRequest
    states: tuple[NodeState, ...]
    reasons: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, wanted: slice) -> list[NodeReasons]:
        nodes = zip(self.states[wanted], self.reasons[wanted], strict=True)
        return [NodeReasons(state.node.name, r, self._cards(state, r)) for state, r in nodes]

    def __iter__(self) -> Iterator[NodeReasons]:
        return iter(self[:])

    def _cards(self, state: NodeState, reasons: tuple[str, ...]) -> tuple[str, ...]:
        if self.pod.gpus and any("gpu" in reason.lower() for reason in reasons):
            return card_words(self.pod, state)
        return ()


@dataclass(frozen=True, slots=True)
class Explanation:
    message: str
    nodes: NodeList


def message_of(cluster: ClusterModel, pod: PodRequest) -> str:
    if pod.unsupported:
        return f"not placed: this scheduler does not support {', '.join(pod.unsupported)}"
    if pod.waits_for:
        return f"0/{len(cluster)} nodes are available: {pod.waits_for}."
    counts: Counter[str] = Counter()
    for refused in refusals(cluster, pod):
        counts[refused.reason] += len(refused.nodes)
    return fit_message(len(cluster), counts)


def fit_message(nodes: int, counts: Counter[str]) -> str:
    """The message of kube-scheduler: reasons with their counts, sorted as text."""
    if not nodes:
        return NO_NODES
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {listed}."


def refusals(
    cluster: ClusterModel, pod: PodRequest, nodes: Ints | None = None
) -> Iterator[Refused]:
    """For each node the first filter that refuses it, with all the reasons that it gives.

    `nodes`: only these; None: all.
    """
    nodes = cluster.all_nodes() if nodes is None else nodes
    for filter_ in FILTERS:
        passed = filter_.passes(pod, cluster, nodes)
        if not passed.all():
            yield from filter_.refusals(pod, cluster, nodes[~passed])
        nodes = nodes[passed]
    yield from _by_cards(cluster, pod, nodes)


def first_reasons(cluster: ClusterModel, pod: PodRequest, node: int) -> list[str]:
    """Why this one node does not take the pod; empty: it does."""
    nodes = np.array([node], dtype=np.intp)
    return [refused.reason for refused in refusals(cluster, pod, nodes)]


def _by_cards(cluster: ClusterModel, pod: PodRequest, nodes: Ints) -> Iterator[Refused]:
    """Nodes that pass every filter and still have no cards for all containers together."""
    grouped = bool(pod.same_card or pod.different_card)
    if len(pod.gpus) <= 1 and not grouped:  # for one container the filters are exact
        return
    ask = ask_of(pod)
    refused = []
    for node in nodes:
        state = cluster.at(int(node))
        closed = closed_cards(pod, cluster, state) if chooses_cards(pod) else NONE_CLOSED
        if allocation_on(cluster, pod, state, _ANY_POLICY, ask, closed) is None:
            refused.append(int(node))
    if refused:
        reason = NO_SUCH_CARD if grouped else NOT_TOGETHER
        yield Refused(reason, np.array(refused, dtype=np.intp), True)


def explain(cluster: ClusterModel, pod: PodRequest) -> Explanation:
    if pod.unsupported or pod.waits_for:
        return Explanation(message_of(cluster, pod), NodeList(pod, (), ()))
    nodes = cluster.all_nodes().tolist()
    reasons: dict[int, tuple[str, ...]] = dict.fromkeys(nodes, ())
    counts: Counter[str] = Counter()
    for refused in refusals(cluster, pod):
        counts[refused.reason] += len(refused.nodes)
        _note(reasons, refused)
    states = tuple([cluster.at(node) for node in nodes])
    listed = NodeList(pod, states, tuple(reasons.values()))
    # Some fit if nobody has tried to place it yet, or something else keeps it waiting.
    if fitting := sum(not found for found in listed.reasons):
        return Explanation(f"{fitting}/{len(cluster)} nodes are available.", listed)
    return Explanation(fit_message(len(cluster), counts), listed)


def _note(reasons: dict[int, tuple[str, ...]], refused: Refused) -> None:
    """Nodes with the same reasons share them: there are few different ones."""
    more: dict[tuple[str, ...], tuple[str, ...]] = {}
    for node in refused.nodes.tolist():
        known = reasons[node]
        if known not in more:
            more[known] = (*known, refused.reason)
        reasons[node] = more[known]
