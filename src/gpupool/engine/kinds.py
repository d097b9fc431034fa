"""Kind: what a pod with GPUs asks for and which nodes it accepts, without its name.

Pods of one kind are alike to a policy. The cluster counts how many of each kind it holds, and
`packing.py` counts how many have asked.
"""

from array import array
from dataclasses import dataclass, field

from gpupool.core.card_choice import CardChoice
from gpupool.core.pods import PodRequest
from gpupool.engine.columns import MIB_SHIFT
from gpupool.engine.policies.policy import Ask
from kubeclient.placement import NodeTerm

_MOST = 2**62  # as `columns.MOST`: nobody has more, and policies compute with 64 bits


@dataclass(frozen=True, slots=True)
class Kind:
    ask: Ask
    node_selector: tuple[tuple[str, str], ...]
    node_terms: tuple[NodeTerm, ...] | None
    card_choice: CardChoice | None
    # Kept, because it takes long, and each pod is counted in several places by its kind.
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = (self.ask, self.node_selector, self.node_terms, self.card_choice)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash


class KindCounts:
    """How many pods there are of each kind. A kind has a number as long as there are pods of it."""

    __slots__ = ("_numbers", "_vacant", "kinds", "pods")

    def __init__(self) -> None:
        self.kinds: list[Kind | None] = []  # by number
        self.pods = array("q")  # by number
        self._numbers: dict[Kind, int] = {}
        self._vacant: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, kind: Kind) -> None:
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = self._new_number(kind)
        self.pods[number] += 1

    def remove(self, kind: Kind) -> None:
        number = self._numbers[kind]
        self.pods[number] -= 1
        if not self.pods[number]:
            del self._numbers[kind]
            self.kinds[number] = None
            self._vacant.append(number)

    def _new_number(self, kind: Kind) -> int:
        if not self._vacant:
            self.kinds.append(kind)
            self.pods.append(0)
            return len(self.kinds) - 1
        number = self._vacant.pop()
        self.kinds[number] = kind
        return number


def kind_of(pod: PodRequest) -> Kind:
    return Kind(ask_of(pod), pod.node_selector, pod.node_terms, pod.card_choice)


def ask_of(pod: PodRequest) -> Ask:
    """The request as policies see it: of several containers with GPUs, the largest ask."""
    resources, gpus = pod.resources, pod.gpus
    cpu = min(resources.get("cpu", 0), _MOST)
    memory = min(resources.get("memory", 0), _MOST) >> MIB_SHIFT
    if not gpus:
        return Ask(0, 0, 0, cpu, memory)
    ask = gpus[0]
    if len(gpus) > 1:
        ask = max(gpus, key=lambda a: (a.whole, a.units * a.cards, a.percent))
    return Ask(ask.whole or ask.cards, ask.units, ask.percent, cpu, memory)
