"""Mix: what the pods of this cluster ask for, as far as it matters for where they should go.

`MixLearner` counts the pods that it is told of, the recent ones more than the old; nobody tunes it.
"""

from collections import Counter
from dataclasses import dataclass

from gpupool.engine.policies.policy import Ask

_MOST_PODS = 16_384  # so many weigh in; then all that was counted so far counts half
_MOST_KINDS = 4_096  # kept apart while counting
_FIRST_LOOK = 32  # pods, before there is anything to say


@dataclass(frozen=True, slots=True)
class Demand:
    """Pods that are alike."""

    ask: Ask
    models: tuple[int, ...]  # the GPU models that will do; empty: any
    pods: int  # how many of them


@dataclass(frozen=True, slots=True)
class Mix:
    demands: tuple[Demand, ...] = ()  # the most frequent first
    # Cards of each model in the cluster; the index is the number that the columns give a model.
    cards_of_model: tuple[int, ...] = ()
    card_totals: tuple[int, ...] = ()  # the different sizes of cards, in the columns' unit


class MixLearner:
    def __init__(self) -> None:
        self._pods: Counter[tuple[Ask, tuple[int, ...]]] = Counter()
        self._counted = 0
        self._fresh = 0  # pods since the last mix

    def count(self, ask: Ask, models: tuple[int, ...]) -> None:
        self._pods[ask, models] += 1
        self._counted += 1
        self._fresh += 1
        if self._counted > _MOST_PODS or len(self._pods) > _MOST_KINDS:
            halves = Counter({kind: pods // 2 for kind, pods in self._pods.items() if pods > 1})
            self._pods, self._counted = halves, halves.total()

    @property
    def is_due(self) -> bool:
        """Whether a new mix would differ: twice as many pods as at the last one, or many new."""
        return self._fresh >= _FIRST_LOOK and self._fresh >= self._counted // 2

    def mix(self, cards_of_model: tuple[int, ...], card_totals: tuple[int, ...]) -> Mix:
        self._fresh = 0
        frequent = sorted(self._pods.items(), key=lambda item: (-item[1], item[0]))
        demands = [Demand(ask, models, pods) for (ask, models), pods in frequent]
        return Mix(tuple(demands), cards_of_model, card_totals)
