"""fgd: the node on which the GPU that a typical pod cannot use grows least.

Fragmentation gradient descent, as published (USENIX ATC 2023), for comparison: the mean over the
typical pods of what each could not use of the node, before and after. Costs are whole percents.
"""

from bisect import bisect_right
from collections import Counter
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpupool.engine.kernel import LIBRARY, TypicalView, rises_by
from gpupool.engine.policies.best_fit import left_over
from gpupool.engine.policies.free_cards import fitting_cards, free_milli, tightest_cards
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import WHOLE, Ask, CardColumns, Ints, Policy, of_nodes

Bools: TypeAlias = NDArray[np.bool_]
_NO_ROOM = int(np.iinfo(np.int64).max)  # in place of a rise
_TYPICAL = 0.95  # this part of the pods is typical: the most frequent kinds
STEPS = 100  # of costs
_FAR = 40  # cards; the scale has no further steps beyond


class Typical(NamedTuple):
    """Kinds of pods, T of them."""

    cards: Ints  # (T, 1)
    memory: Ints  # (T, 1, 1); 0: whole cards
    cpu_milli: Ints  # (T, 1)
    on_model: Ints  # (T, models + 1): 1 where the model will do
    weight: Ints  # (T, 1): how many
    steps: Ints  # (STEPS,)
    view: TypicalView  # the same for `kernel.py`


class Fill(NamedTuple):
    """What the typical pods (T) find on cards (C) of nodes (k)."""

    milli: Ints  # (C, k)
    size: Ints  # (T, C, k): what a pod would take of the card
    low: Ints  # (T, k): what is free on cards that are too full for it
    roomy: Ints  # (T, k): how many cards would do


def fgd(mix: Mix) -> Policy:
    if not any(demand.ask.cards for demand in mix.demands):
        return Policy("fgd", left_over, tightest_cards)  # no pods counted yet
    typical = typical_pods(mix)
    cards = partial(_cards, typical, typical.steps.tolist())
    return Policy("fgd", partial(_costs, typical), cards, compiled=typical.view)


def typical_pods(mix: Mix) -> Typical:
    enough = _TYPICAL * sum(demand.pods for demand in mix.demands)
    chosen, count = [], 0
    for demand in _kinds(mix):
        if count >= enough:
            break
        chosen.append(demand)
        count += demand.pods
    models = len(mix.cards_of_model) + 1
    on_model = [[int(not d.models or m in d.models) for m in range(models)] for d in chosen]
    cards = np.array([[d.ask.cards] for d in chosen])
    memory = np.array([[[d.ask.memory]] for d in chosen])
    cpu_milli = np.array([[d.ask.cpu_milli] for d in chosen])
    weight = np.array([[d.pods] for d in chosen])
    arrays = {"cards": cards, "memory": memory, "cpu_milli": cpu_milli, "weight": weight}
    steps = steps_of(int(weight.sum()))
    view = TypicalView(**arrays, on_model=np.array(on_model), steps=steps)
    return Typical(cards, memory, cpu_milli, np.array(on_model), weight, steps, view)


def _kinds(mix: Mix) -> list[Demand]:
    """The most frequent first. As published, the host's memory does not make a kind."""
    pods: Counter[tuple[Ask, tuple[int, ...]]] = Counter()
    for demand in mix.demands:
        pods[demand.ask._replace(memory_mib=0), demand.models] += demand.pods
    return [Demand(ask, models, count) for (ask, models), count in pods.most_common()]


def _cards(
    typical: Typical, steps: list[int], columns: CardColumns, ask: Ask, node: int
) -> tuple[int, ...]:
    rises = _rises(typical, columns, ask, np.array([node]))[:, 0].tolist()
    # Plain numbers are faster for a few cards. As `_costs`, from 0 up.
    costs = [bisect_right(steps, rise) for rise in rises]
    fitting = sorted(fitting_cards(columns, ask, node), key=costs.__getitem__)
    return tuple(sorted(fitting[: ask.cards]))


def _costs(typical: Typical, columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    """By the best card of each node."""
    least = _rises(typical, columns, ask, nodes).min(axis=0)
    # A card without room is beyond all steps: worse than any that fits.
    costs: Ints = np.searchsorted(typical.steps, least, side="right") - STEPS
    return costs


def _rises(typical: Typical, columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    """(C, k): of using each card; (1, k) where there is nothing to choose."""
    view = columns.view
    if view is not None and LIBRARY is not None:
        return rises_by(LIBRARY, view, typical.view, ask, nodes)
    return rises_of(typical, columns, ask, nodes)


def rises_of(typical: Typical, columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    """(C, k) or (1, k): how much more all typical pods together cannot use."""
    total = of_nodes(columns.card_total, nodes)
    milli = free_milli(columns, nodes)
    size = np.where(typical.memory, -(-typical.memory * WHOLE // total), WHOLE)
    fill = Fill(milli, size, *_count(milli, size))
    cpu = columns.cpu_free[nodes]
    model = typical.on_model.take(columns.model[nodes], axis=1, mode="clip") > 0
    before = _fragments(typical, fill, milli.sum(axis=0), model & (cpu >= typical.cpu_milli))
    served = model & (cpu - ask.cpu_milli >= typical.cpu_milli)
    if not ask.memory:
        left = _without_whole(milli, ask.cards)
        after = _fragments(typical, Fill(left, size, *_count(left, size)), left.sum(axis=0), served)
        return np.asarray(after - before)[np.newaxis]
    taken = -(-ask.memory * WHOLE // total)
    found = np.stack(
        [
            _fragments(typical, _with_one_less(fill, card, taken), _rest(fill, card, taken), served)
            for card in range(len(total))
        ]
    )
    return np.where(milli < taken, _NO_ROOM, found - before)


def _count(milli: Ints, size: Ints) -> tuple[Ints, Ints]:
    fits = milli >= size
    return np.where(fits, 0, milli).sum(axis=1), fits.sum(axis=1)


def _with_one_less(fill: Fill, card: int, taken: Ints) -> Fill:
    """With `taken` used of one card."""
    old, size = fill.milli[card], fill.size[:, card]
    new = np.maximum(old - taken[card], 0)
    low = fill.low - np.where(old < size, old, 0) + np.where(new < size, new, 0)
    roomy = fill.roomy - (old >= size) + (new >= size)
    return Fill(fill.milli, fill.size, low, roomy)


def _rest(fill: Fill, card: int, taken: Ints) -> Ints:
    rest: Ints = fill.milli.sum(axis=0) - np.minimum(taken[card], fill.milli[card])
    return rest


def _without_whole(milli: Ints, cards: int) -> Ints:
    """The first untouched cards are taken."""
    whole = milli == WHOLE
    return np.where(whole & (whole.cumsum(axis=0) <= cards), 0, milli)


def _fragments(typical: Typical, fill: Fill, left: Ints, served: Bools) -> Ints:
    """(k,): what all typical pods together cannot use; pods without GPUs can use nothing."""
    suits = served & (fill.roomy >= typical.cards) & (typical.cards > 0)
    fragments: Ints = (np.where(suits, fill.low, left) * typical.weight).sum(axis=0)
    return fragments


def steps_of(weight: int) -> Ints:
    """The rises, in order, from which on a node costs one more; each is found by halving.

    Costs are scaled to 100 steps, as published: small differences do not count. `weight`: of all
    typical pods. Whole numbers, because two exponential functions need not agree in the last bit.
    """
    below = np.full(STEPS, -_FAR * WHOLE * weight)
    found = np.full(STEPS, _FAR * WHOLE * weight)
    costs = np.arange(1 - STEPS, 1)
    while (found - below > 1).any():
        middle = (below + found) // 2
        reached = -(100 / (1 + np.exp(middle / (weight * WHOLE)))).astype(np.int64) >= costs
        found = np.where(reached, middle, found)
        below = np.where(reached, below, middle)
    return found
