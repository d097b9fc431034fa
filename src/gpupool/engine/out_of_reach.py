"""out_of_reach: why a pod would not fit on a node even if these pods left it. A quick answer.

Preemption finds the same in a trial, which takes a hundred times as long: on a large cluster where
nobody may leave, a second for one pod. Here numbers are added up, and only what is certain is said.
"""

from collections.abc import Mapping, Sequence

from gpupool.core.gpu import GpuMode
from gpupool.core.pods import PodRequest
from gpupool.engine.columns import MOST
from gpupool.engine.filters import gpus, resources
from gpupool.engine.node_state import Held, NodeState
from gpupool.engine.victims_by_card import cards_after


def out_of_reach(
    pod: PodRequest, wanted: Mapping[str, int], state: NodeState, below: Sequence[Held]
) -> list[str]:
    """The reasons, as the filters give them; empty: it may fit. All earlier filters have passed.

    `wanted`: the resources of the pod.
    """
    if pod.host_ports:  # their filter comes before, and its reason would be another
        return []
    return _too_little(wanted, state, below) or _too_few_cards(pod, state, below)


def _too_little(wanted: Mapping[str, int], state: NodeState, below: Sequence[Held]) -> list[str]:
    reasons = []
    offered, taken = state.node.allocatable, state.held
    for name, amount in wanted.items():
        left = offered.get(name, 0) - taken.get(name, 0)
        if left < amount:
            for held in below:
                left += held.pod.resources.get(name, 0)
        if left < amount or amount > MOST:
            reasons.append(resources.reason_of(name))
    return reasons


def _too_few_cards(pod: PodRequest, state: NodeState, below: Sequence[Held]) -> list[str]:
    if len(pod.gpus) != 1 or pod.card_choice is not None or pod.gpus[0].percent:
        return []  # their reasons have more than one cause
    ask = pod.gpus[0]
    other = GpuMode.SHARED if ask.whole else GpuMode.WHOLE
    if not state.cards or state.node.gpu_mode is other:
        return []
    if cards_after(ask, state, below) >= (ask.whole or ask.cards):
        return []
    return [gpus.NO_WHOLE if ask.whole else gpus.no_memory(ask)]
