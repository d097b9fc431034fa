"""Kind: what a pod with GPUs asks for and which nodes it accepts, without its name.

Pods of one kind are alike to a policy. The cluster counts how many of each kind it holds, and
`packing.py` counts how many have asked.
"""

from typing import NamedTuple

from gpupool.core.card_choice import CardChoice
from gpupool.core.pods import PodRequest
from gpupool.engine.policies.policy import Ask
from kubeclient.placement import NodeTerm

_MIB_SHIFT = 20


class Kind(NamedTuple):
    ask: Ask
    node_selector: tuple[tuple[str, str], ...]
    node_terms: tuple[NodeTerm, ...] | None
    card_choice: CardChoice | None


def kind_of(pod: PodRequest) -> Kind:
    return Kind(ask_of(pod), pod.node_selector, pod.node_terms, pod.card_choice)


def ask_of(pod: PodRequest) -> Ask:
    """The request as policies see it: of several containers with GPUs, the largest ask."""
    cpu = pod.resources.get("cpu", 0)
    memory = pod.resources.get("memory", 0) >> _MIB_SHIFT
    if not pod.gpus:
        return Ask(0, 0, 0, cpu, memory)
    ask = pod.gpus[0]
    if len(pod.gpus) > 1:
        ask = max(pod.gpus, key=lambda a: (a.whole, a.units * a.cards, a.percent))
    return Ask(ask.whole or ask.cards, ask.units, ask.percent, cpu, memory)
