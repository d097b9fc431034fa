"""Why GPUs are missing, in words: one sentence about the cluster, and a line for each card."""

import numpy as np

from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import GpuAsk, GpuMode
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.filters import OF_THE_NODE
from gpupool.engine.filters.gpus import allows_mode, whole_cards
from gpupool.engine.node_state import CardState, NodeState
from gpupool.engine.open_cards import open_cards, untouched_cards
from gpupool.engine.policies.policy import Ints, of_nodes

_SHOWN = 3  # pods of a card, and models or uuids that a pod names; the others are counted


def card_summary(cluster: ClusterModel, pod: PodRequest) -> str:
    """How near the cluster comes to the GPUs that a pod asks for, in one sentence.

    Only nodes that are open to the pod count. Empty: GPUs are not the reason, or no node with cards
    is open to the pod.
    """
    if not pod.gpus or pod.waits_for:
        return ""
    nodes = open_nodes(cluster, pod)
    fitting = nodes[allows_mode(pod, cluster, nodes)]
    if not len(nodes):
        return ""
    words = _nearest(cluster, pod, fitting) if len(fitting) else _other_way(cluster, pod, nodes)
    return f"GPUs: {words}." if words else ""


def open_nodes(cluster: ClusterModel, pod: PodRequest) -> Ints:
    nodes = np.flatnonzero(cluster.columns.has_cards)
    for filter_ in OF_THE_NODE:
        nodes = nodes[filter_.passes(pod, cluster, nodes)]
    return nodes


def _other_way(cluster: ClusterModel, pod: PodRequest, nodes: Ints) -> str:
    """All nodes offer their cards in another way than the pod asks. Empty: some do neither."""
    whole, share = (any(asks) for asks in zip(*((a.whole, a.units) for a in pod.gpus), strict=True))
    if whole and share:
        return ""
    cards = sum(len(cluster.at(int(node)).cards) for node in nodes)
    subject = "the only card is" if cards == 1 else f"all {cards} cards are"
    ways = (
        ("in shares (aliyun.com/gpu-mem)", "whole")
        if whole
        else ("whole (nvidia.com/gpu)", "in shares")
    )
    return f"{subject} offered {ways[0]}, not {ways[1]}"


def _nearest(cluster: ClusterModel, pod: PodRequest, nodes: Ints) -> str:
    """Empty: some node has what the largest ask needs, or all whole cards that the pod needs."""
    ask = max(pod.gpus, key=lambda each: (each.whole, each.units * each.cards, each.percent))
    columns = cluster.columns
    choice = pod.card_choice or CardChoice()
    accepted = open_cards(choice, columns, nodes)
    counts = accepted.sum(axis=0)
    cards, whole = int(counts.sum()), whole_cards(pod)
    if not cards:
        return f"the pod accepts none of the cards there ({chosen_words(choice)})"
    wanted_cards = whole or ask.cards
    if wanted_cards > counts.max():
        return f"no node has more than {counts.max()}, {wanted_cards} wanted"
    if whole:
        untouched = (untouched_cards(columns, nodes) & accepted).sum(axis=0)
        return _counted(f"of {cards} free", untouched, whole)
    free = np.where(accepted, of_nodes(columns.card_free, nodes), 0)
    roomy = free >= ask.units
    if not roomy.any():
        return f"none of {cards} has {ask.units} units free, the best has {free.max()}"
    fits = roomy & (of_nodes(columns.card_compute, nodes) >= ask.percent)
    wanted = f"{ask.units} units" + (f" and {ask.percent} % of compute" if ask.percent else "")
    return _counted(f"of {cards} with {wanted} free", fits.sum(axis=0), ask.cards)


def _counted(words: str, by_node: Ints, wanted: int) -> str:
    most = int(by_node.max())
    if most >= wanted:
        return ""
    return f"{int(by_node.sum())} {words}, at most {most} on one node"


def card_words(pod: PodRequest, state: NodeState) -> tuple[str, ...]:
    """A line for each card of a node: what is free of it, against what the pod asks for."""
    ask = max(pod.gpus, key=lambda each: (each.whole, each.units))
    choice = pod.card_choice or CardChoice()
    return tuple(
        f"card {card.card.index}: {_unwanted(choice, card) or _state(state, card, ask)}"
        for card in state.cards
    )


def chosen_words(choice: CardChoice) -> str:
    """What the pod says about the cards that it accepts."""
    lists = (
        ("model", choice.models),
        ("no model", choice.avoided_models),
        ("uuid", choice.uuids),
        ("no uuid", choice.avoided_uuids),
    )
    return "; ".join(f"{what} {_any_of(names)}" for what, names in lists if names)


def _any_of(names: tuple[str, ...]) -> str:
    more = len(names) - _SHOWN
    listed = " or ".join(names[:_SHOWN])
    return f"{listed} or {more} more" if more > 0 else listed


def _unwanted(choice: CardChoice, card: CardState) -> str:
    """Empty: the pod accepts the card."""
    if not choice.takes_model(card.card.model):
        part = CardChoice(choice.models, choice.avoided_models)
        return f"left out: {card.card.model}, {chosen_words(part)} wanted"
    if not choice.takes_uuid(card.card.uuid):
        part = CardChoice(uuids=choice.uuids, avoided_uuids=choice.avoided_uuids)
        return f"left out: {card.card.uuid}, {chosen_words(part)} wanted"
    return ""


def closed_words(state: NodeState, card: CardState) -> str:
    """Why a card is closed: a pod may hold it."""
    uuid = card.card.uuid
    pods = [
        f"{held.pod.namespace}/{held.pod.name}"
        for held in state.pods.values()
        if any(hold.possible and hold.uuid == uuid for hold in held.cards)
    ]
    more = f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
    return f"closed: which cards pod {min(pods)}{more} holds cannot be read"


def _state(state: NodeState, card: CardState, ask: GpuAsk) -> str:
    closed = closed_words(state, card) if card.closed and card.usable else ""
    # The mode before the pods on the card: when they have ended, it still would not do.
    text = closed or _unfit(card) or _wrong_mode(state, ask) or _taken(state, card, ask)
    text = text or "would do"
    if card.card.outside_mib:
        text += f"; {card.card.outside_mib} MiB held by processes outside Kubernetes"
    return text


def _wrong_mode(state: NodeState, ask: GpuAsk) -> str:
    """A free card is of no use to a pod that asks in the other way."""
    if ask.whole and state.node.gpu_mode is GpuMode.SHARED:
        return "offered in shares only, a whole card wanted"
    if ask.units and state.node.gpu_mode is GpuMode.WHOLE:
        return "offered whole only, a share wanted"
    return ""


def _unfit(card: CardState) -> str:
    if not card.card.takes_pods:
        reason = f" ({card.card.reason})" if card.card.reason else ""
        return f"{card.card.health}{reason}"
    if not card.usable:
        return "has less than one unit of memory"
    return ""


def _taken(state: NodeState, card: CardState, ask: GpuAsk) -> str:
    if card.wholes:
        return f"held whole by {_holders(state, card)[0]}"
    if ask.whole:
        if card.is_untouched:
            return ""
        return f"shared by {_holders(state, card)[0]}" if card.pods else "not all of it is free"
    if card.free < ask.units:
        free = f"{card.free} of {card.card.units} units free, {ask.units} wanted"
    elif card.compute < ask.percent:
        free = f"{card.compute} % of compute free, {ask.percent} % wanted"
    else:
        return ""
    if not card.pods:
        return free
    names, count = _holders(state, card)
    return f"{free}; {names} {'holds' if count == 1 else 'hold'} some of it"


def _holders(state: NodeState, card: CardState) -> tuple[str, int]:
    """Who holds the card: the first few by name, those with the most of it first; and how many."""
    uuid = card.card.uuid
    holds = [
        (-hold.units, f"{held.pod.namespace}/{held.pod.name}", held.reserved)
        for held in state.pods.values()
        for hold in held.cards
        if hold.uuid == uuid
    ]
    shown = [name + (" (kept for it)" if kept else "") for _, name, kept in sorted(holds)]
    more = len(shown) - _SHOWN
    if more > 0:
        return f"{', '.join(shown[:_SHOWN])} and {more} more", len(shown)
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))), len(shown)
