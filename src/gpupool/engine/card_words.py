"""card_words: what is free of each card of a node, against what a pod asks for, in words."""

from gpupool.core.gpu import GpuAsk
from gpupool.core.pods import PodRequest
from gpupool.engine.node_state import CardState, NodeState


def card_words(pod: PodRequest, state: NodeState) -> tuple[str, ...]:
    ask = max(pod.gpus, key=lambda each: (each.whole, each.units))
    return tuple(f"GPU {card.card.index}: {_state(card, ask)}" for card in state.cards)


def _state(card: CardState, ask: GpuAsk) -> str:
    text = _refusal(card, ask) or "would do"
    if card.card.outside_mib:
        text += f"; {card.card.outside_mib} MiB held by processes outside Kubernetes"
    return text


def _refusal(card: CardState, ask: GpuAsk) -> str:
    if not card.card.takes_pods:
        reason = f" ({card.card.reason})" if card.card.reason else ""
        return f"{card.card.health}{reason}"
    if not card.usable:
        return "has less than one unit of memory"
    if card.wholes:
        return "held whole by a pod"
    if ask.whole:
        if card.is_untouched:
            return ""
        pods = "a pod" if card.pods == 1 else f"{card.pods} pods"
        return f"shared by {pods}" if card.pods else "not all of it is free"
    if card.free < ask.units:
        return f"{card.free} of {card.card.units} units free, {ask.units} wanted"
    if card.compute < ask.percent:
        return f"{card.compute} % of compute free, {ask.percent} % wanted"
    return ""
