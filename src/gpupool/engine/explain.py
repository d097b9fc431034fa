"""Why a pod fits nowhere: in one sentence as kube-scheduler says it, and by node and by card.

Made only when somebody asks.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpupool.core.request import PodRequest
from gpupool.engine.card_groups import closed_cards
from gpupool.engine.card_words import card_words
from gpupool.engine.cards import allocation_on
from gpupool.engine.cluster import Cluster
from gpupool.engine.filters import FILTERS
from gpupool.engine.filters.filter import Refused
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ints
from gpupool.engine.verdicts import ask_of

NO_NODES = "no nodes available to schedule pods"
NOT_TOGETHER = "Insufficient GPUs for all containers at once"
NO_SUCH_CARD = "node(s) had no GPU that the pod's card group may use"
_ANY_POLICY = POLICIES["best-fit"](Mix())


@dataclass(frozen=True, slots=True)
class NodeReasons:
    node: str
    reasons: tuple[str, ...]  # none: the pod would fit
    cards: tuple[str, ...]  # a line for each card of a node that has too little GPU


@dataclass(frozen=True, slots=True)
class Explanation:
    message: str
    nodes: tuple[NodeReasons, ...]  # in the order of nodes


def message_of(cluster: Cluster, pod: PodRequest) -> str:
    if pod.unsupported:
        return f"not placed: this scheduler does not support {', '.join(pod.unsupported)}"
    if pod.waits_for:
        return f"0/{len(cluster)} nodes are available: {pod.waits_for}."
    counts: Counter[str] = Counter()
    for refused in refusals(cluster, pod):
        counts[refused.reason] += len(refused.nodes)
    return fit_message(len(cluster), counts)


def fit_message(nodes: int, counts: Counter[str]) -> str:
    """As kube-scheduler says it: reasons with their counts, sorted as text."""
    if not nodes:
        return NO_NODES
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {listed}."


def refusals(cluster: Cluster, pod: PodRequest, nodes: Ints | None = None) -> Iterator[Refused]:
    """For each node the first filter that refuses it, with all the reasons that it gives.

    `nodes`: only of these.
    """
    nodes = cluster.all_nodes() if nodes is None else nodes
    for filter_ in FILTERS:
        passed = filter_.passes(pod, cluster, nodes)
        if not passed.all():
            yield from filter_.refusals(pod, cluster, nodes[~passed])
        nodes = nodes[passed]
    yield from _by_cards(cluster, pod, nodes)


def first_reasons(cluster: Cluster, pod: PodRequest, node: int) -> list[str]:
    """Why this one node does not take the pod; empty: it does."""
    nodes = np.array([node], dtype=np.intp)
    return [refused.reason for refused in refusals(cluster, pod, nodes)]


def _by_cards(cluster: Cluster, pod: PodRequest, nodes: Ints) -> Iterator[Refused]:
    """Nodes that pass every filter and still have no cards for all containers together."""
    grouped = pod.same_card or pod.different_card
    if len(pod.gpus) <= 1 and not grouped:
        return
    ask = ask_of(pod)
    refused = []
    for node in nodes:
        state = cluster.at(int(node))
        closed = closed_cards(pod, cluster, state) if grouped else frozenset()
        if allocation_on(cluster, pod, state, _ANY_POLICY, ask, closed) is None:
            refused.append(int(node))
    if refused:
        reason = NO_SUCH_CARD if grouped else NOT_TOGETHER
        yield Refused(reason, np.array(refused, dtype=np.intp), True)


def explain(cluster: Cluster, pod: PodRequest) -> Explanation:
    reasons: dict[int, list[str]] = {int(node): [] for node in cluster.all_nodes()}
    if pod.unsupported or pod.waits_for:
        return Explanation(message_of(cluster, pod), ())
    counts: Counter[str] = Counter()
    for refused in refusals(cluster, pod):
        counts[refused.reason] += len(refused.nodes)
        for node in refused.nodes:
            reasons[int(node)].append(refused.reason)
    listed = []
    for node, texts in reasons.items():
        state = cluster.at(node)
        cards = card_words(pod, state) if pod.gpus and _is_about_cards(texts) else ()
        listed.append(NodeReasons(state.node.name, tuple(texts), cards))
    return Explanation(fit_message(len(cluster), counts), tuple(listed))


def _is_about_cards(reasons: list[str]) -> bool:
    return any("gpu" in reason.lower() for reason in reasons)
