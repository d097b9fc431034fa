"""The weights of the residue policy, and the lookup tables that it makes from a mix.

Used by `residue.py` (many nodes at once) and `residue_of_one.py`.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpupool.engine.policies.cutting import usable_milli
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import WHOLE, Ints
from gpupool.engine.policies.scarcity import milli_of

PARTLY_USED = 30  # what a card costs that is neither free nor full
PULL = 8  # what a card costs that stays usable on the node
PULLED_CARDS = 3  # more of them on one node cost no more
# Costs are summed in 1/250 of a thousandth of a card, so that all terms are whole numbers.
FINE = 250
HALF = FINE // 2
PULL_FINE = PULL * FINE // WHOLE
# Of at most 64 cards the count changes by less than half of this, so `parted` can separate it.
FLAGS = 256  # the low bits of `worth` count partly used cards
MIB = 2**20
# More than all cards of a node are worth together, so a card without room is never the best.
_NO_ROOM = 2**20

Number = TypeVar("Number", int, Ints)


@dataclass(frozen=True, slots=True)
class Tables:
    """Lookup tables for one mix."""

    # For every card size: how much of 0..total free is usable. One size after the other, each with
    # a stretch of "no room" before it, where an index of free minus asked below 0 leads.
    usable: Ints
    # Usable minus the cost of a partly used card; times 256, plus 1 for a partly used card.
    worth: Ints
    # By the total of a card: the index of "0 free" in the tables. Sizes that the mix does not have,
    # and absent cards, use the largest size.
    first: Ints
    usable_list: list[int]  # the same three as lists, for single cards
    worth_list: list[int]
    first_list: list[int]
    only_total: int  # the size of all cards; 0: sizes differ
    cards_for: NDArray[np.float64]  # (2, 1): thousandths of a card for a milli of CPU, for a byte
    cards_for_list: list[float]
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
        any(demand.ask.compute for demand in wanted),
    )


def _cards_for(wanted: list[Demand], mix: Mix) -> NDArray[np.float64]:
    milli = sum(demand.pods * milli_of(demand.ask, mix.card_totals[-1]) for demand in wanted)
    cpu = sum(demand.pods * demand.ask.cpu_milli for demand in wanted)
    memory = MIB * sum(demand.pods * demand.ask.memory_mib for demand in wanted)
    return np.array([[milli / max(cpu, 1)], [milli / max(memory, 1)]])


def _demand_by_size(wanted: list[Demand], total: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for demand in wanted:
        size = demand.ask.memory or total
        found[size] = found.get(size, 0) + demand.pods * demand.ask.cards
    return found


def parted(difference: Number) -> tuple[Number, Number]:
    """A difference of `Tables.worth` as (lost worth, lost usable part)."""
    lost = (difference + FLAGS // 2) // FLAGS
    return lost, lost + (difference - lost * FLAGS) * PARTLY_USED
