"""Mix: what the pods of this cluster ask for, as far as it matters for where they should go."""

from dataclasses import dataclass

from gpupool.engine.policies.policy import Ask


@dataclass(frozen=True, slots=True)
class Demand:
    """Pods that are alike."""

    ask: Ask
    models: tuple[int, ...]  # the GPU models that will do; empty: any
    pods: int  # how many of them


@dataclass(frozen=True, slots=True)
class Mix:
    demands: tuple[Demand, ...] = ()
    # Cards of each model in the cluster; the index is the number that the columns give a model.
    cards_of_model: tuple[int, ...] = ()
    card_memory: tuple[int, ...] = ()  # the different sizes of cards, in the columns' unit
