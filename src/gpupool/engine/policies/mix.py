"""Mix: what the pods of this cluster ask for, as far as policies need it.

`MixLearner` counts pods; recent pods weigh more than old ones. It has no settings.
"""

from collections import Counter
from dataclasses import dataclass

from gpupool.engine.policies.policy import Ask

_MOST_PODS = 16_384  # above this all counts are halved, so that old pods fade
_MOST_KINDS = 4_096  # different kinds that are counted
_FIRST_LOOK = 32  # pods before the first mix

Wanted = tuple[Ask, tuple[int, ...]]  # with the usable GPU models; empty: any


@dataclass(frozen=True, slots=True)
class Demand:
    """A kind of pods, and how many there are."""

    ask: Ask
    models: tuple[int, ...]  # usable GPU models; empty: any
    pods: int  # how many of them


@dataclass(frozen=True, slots=True)
class Mix:
    demands: tuple[Demand, ...] = ()  # the most frequent first
    # Cards of each model in the cluster; the index is the number that the columns give a model.
    cards_of_model: tuple[int, ...] = ()
    card_totals: tuple[int, ...] = ()  # the different sizes of cards, in the columns' unit


class MixLearner:
    def __init__(self) -> None:
        self._pods: Counter[Wanted] = Counter()
        self._counted = 0
        self._fresh = 0  # pods since the last mix

    def count(self, wanted: Wanted) -> None:
        self._pods[wanted] += 1
        self._counted += 1
        self._fresh += 1
        if self._counted > _MOST_PODS or len(self._pods) > _MOST_KINDS:
            halves = Counter({kind: pods // 2 for kind, pods in self._pods.items() if pods > 1})
            self._pods, self._counted = halves, halves.total()

    @property
    def is_due(self) -> bool:
        """Whether enough new pods were counted that a new mix would differ."""
        return self._fresh >= _FIRST_LOOK and self._fresh >= self._counted // 2

    def mix(self, cards_of_model: tuple[int, ...], card_totals: tuple[int, ...]) -> Mix:
        self._fresh = 0
        # Kinds with the same count in a fixed order: the policy must not depend on which pod came
        # first.
        frequent = sorted(self._pods.items(), key=lambda item: (-item[1], item[0]))
        demands = [Demand(ask, models, pods) for (ask, models), pods in frequent]
        return Mix(tuple(demands), cards_of_model, card_totals)
