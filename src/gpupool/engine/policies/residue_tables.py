"""The weights of residue, and what a mix of work comes to.

For `residue.py`, which judges many nodes at once, and `residue_of_one.py`.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpupool.engine.policies.cutting import usable_milli
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import WHOLE, Ask, Ints

PARTLY_USED = 30  # what a card costs that is neither free nor full
PULL = 8  # what a card costs that stays usable on the node
PULLED_CARDS = 3  # more of them on one node cost no more
PRICE = 0.75  # of competition for a GPU model
# Costs are summed up in this part of a thousandth of a card, so that all of it is whole numbers.
FINE = 250
HALF = FINE // 2
PULL_FINE = PULL * FINE // WHOLE
FLAGS = 256  # room for how many cards are partly used, beside what they are worth
MIB = 2**20
_NO_ROOM = 2**20

Number = TypeVar("Number", int, Ints)


@dataclass(frozen=True, slots=True)
class Tables:
    """What a mix comes to."""

    # For every size of card, what 0..total free are good for, one size after the other. Before
    # each stands a stretch that says "no room", for what is free less what is asked for.
    usable: Ints
    # The same, less what a partly used card costs; times 256, plus 1 for a partly used card.
    worth: Ints
    # Where nothing free stands in there, by the total of the card. Cards of a size that the mix
    # has not heard of, and those that are not there, count as parts of the largest.
    first: Ints
    usable_list: list[int]  # the three again, for single cards
    worth_list: list[int]
    first_list: list[int]
    only_total: int  # of all cards; 0: they differ
    cards_for: NDArray[np.float64]  # (2, 1): thousandths of a card for a milli of CPU, for a byte
    cards_for_list: list[float]
    price: Ints | None  # by model: what a thousandth of a card costs; None: all the same
    counts_compute: bool  # whether any pod asks for a share of compute


def tables_of(mix: Mix) -> Tables:
    wanted = [demand for demand in mix.demands if demand.ask.cards]
    largest = max(mix.card_totals)
    first = np.zeros(largest + 1, dtype=np.int64)
    parts: list[Ints] = []
    for total in mix.card_totals:
        parts.append(np.full(largest, -_NO_ROOM))
        first[total] = sum(map(len, parts))
        parts.append(usable_milli(_demand_by_size(wanted, total), total))
    first[first == 0] = first[largest]
    usable = np.concatenate(parts)
    partly = np.ones(len(usable), dtype=np.int64)
    for total in mix.card_totals:
        partly[[first[total], first[total] + total]] = 0
    worth = (usable - PARTLY_USED * partly) * FLAGS + partly
    cards_for = _cards_for(wanted, mix)
    return Tables(
        usable,
        worth,
        first,
        usable.tolist(),
        worth.tolist(),
        first.tolist(),
        largest if len(mix.card_totals) == 1 else 0,
        cards_for,
        cards_for.ravel().tolist(),
        _prices(wanted, mix) if any(demand.models for demand in wanted) else None,
        any(demand.ask.compute for demand in wanted),
    )


def _cards_for(wanted: list[Demand], mix: Mix) -> NDArray[np.float64]:
    milli = sum(demand.pods * _milli(demand.ask, mix.card_totals[-1]) for demand in wanted)
    cpu = sum(demand.pods * demand.ask.cpu_milli for demand in wanted)
    memory = MIB * sum(demand.pods * demand.ask.memory_mib for demand in wanted)
    return np.array([[milli / max(cpu, 1)], [milli / max(memory, 1)]])


def _demand_by_size(wanted: list[Demand], total: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for demand in wanted:
        size = demand.ask.memory or total
        found[size] = found.get(size, 0) + demand.pods * demand.ask.cards
    return found


def _milli(ask: Ask, total: int) -> int:
    """What an ask comes to on cards of this size."""
    return ask.cards * min(WHOLE, (ask.memory or total) * WHOLE // total)


def _prices(wanted: list[Demand], mix: Mix) -> Ints:
    """How much more than the average card one of each model is asked for, when every demand is
    spread over the models that will do."""
    cards = np.array(mix.cards_of_model, dtype=np.float64)
    asked = np.zeros(len(cards))
    for demand in wanted:
        models = list(demand.models) or list(range(len(cards)))
        amount = demand.pods * _milli(demand.ask, mix.card_totals[-1])
        share = cards[models]
        asked[models] += amount * share / max(share.sum(), 1.0)
    average = asked.sum() / max(cards.sum(), 1.0)
    if not average:
        return np.zeros(len(cards) + 1, dtype=np.int64)
    excess = asked / np.maximum(cards, 1.0) / average - 1
    prices = np.rint(excess * (PRICE * FINE)).astype(np.int64)
    return np.append(prices, 0)


def parted(difference: Number) -> tuple[Number, Number]:
    """What is lost by a difference of `Tables.worth`, and what of it was usable."""
    lost = (difference + FLAGS // 2) // FLAGS
    return lost, lost + (difference - lost * FLAGS) * PARTLY_USED
