"""residue: where the least GPU becomes useless for the pods that this cluster sees. The default.

A pod goes where this sum rises least, in thousandths of a card:
- the residue of every card (`cutting.py`), and a little for a card that is partly used;
- half of the GPU that the node's CPU, and of that which its memory, could not feed any more;
- a little for every usable card that the node would keep: the fullest node first;
- what the pod takes, times how much pods that are bound to GPU models compete for this one.
Less than a thousandth does not count. Among equals the smaller machine is taken, and then always
the first one: so that large ones, and the last, stay free for large pods.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpupool.engine.policies.best_fit import left_over
from gpupool.engine.policies.bulk import BULKS
from gpupool.engine.policies.cutting import usable_milli
from gpupool.engine.policies.free_cards import fitting_cards, tightest_cards
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import WHOLE, Ask, CardColumns, Ints, Policy

_PARTLY_USED = 30  # what a card costs that is neither free nor full
_PULL = 8  # what a card costs that stays usable on the node
_PULLED_CARDS = 3  # more of them on one node cost no more
_PRICE = 0.75  # of competition for a GPU model
# Costs are summed up in this part of a thousandth of a card, so that all of it is whole numbers.
_FINE = 250
_HALF = _FINE // 2
_PULL_FINE = _PULL * _FINE // WHOLE
_NO_ROOM = 2**20
_FLAGS = 256  # room for how many cards are partly used, beside what they are worth
_FEW = 4  # so many nodes are judged faster one by one
_MIB = 2**20


Number = TypeVar("Number", int, Ints)


@dataclass(frozen=True, slots=True)
class Tables:
    """What a mix comes to."""

    # For every size of card, what 0..total free are good for, one size after the other. Before
    # each stands a stretch that says "no room", for what is free less what is asked for.
    usable: Ints
    # The same, less what a partly used card costs; times 256, plus 1 for a partly used card.
    worth: Ints
    usable_list: list[int]  # both again, for single cards
    worth_list: list[int]
    first: Ints  # where nothing free stands in there, by the total of the card
    only_total: int  # of all cards; 0: they differ
    cards_for: NDArray[np.float64]  # (2, 1): thousandths of a card for a milli of CPU, for a byte
    price: Ints | None  # by model: what a thousandth of a card costs; None: all the same
    counts_compute: bool  # whether any pod asks for a share of compute


def residue(mix: Mix) -> Policy:
    if not any(demand.ask.cards for demand in mix.demands) or not mix.card_totals:
        return Policy("residue", left_over, tightest_cards)  # nothing is known yet
    tables = tables_of(mix)
    return Policy("residue", partial(_costs, tables), partial(_cards, tables))


def tables_of(mix: Mix) -> Tables:
    wanted = [demand for demand in mix.demands if demand.ask.cards]
    first = np.zeros(max(mix.card_totals) + 1, dtype=np.int64)
    parts: list[Ints] = []
    for total in mix.card_totals:
        parts.append(np.full(total, -_NO_ROOM))
        first[total] = sum(map(len, parts))
        usable = usable_milli(_demand_by_size(wanted, total), total)
        parts.append(usable)
    usable = np.concatenate(parts)
    partly = np.ones(len(usable), dtype=np.int64)
    for total in mix.card_totals:
        partly[[first[total], first[total] + total]] = 0
    worth = (usable - _PARTLY_USED * partly) * _FLAGS + partly
    return Tables(
        usable,
        worth,
        usable.tolist(),
        worth.tolist(),
        first,
        mix.card_totals[0] if len(mix.card_totals) == 1 else 0,
        _cards_for(wanted, mix),
        _prices(wanted, mix) if any(demand.models for demand in wanted) else None,
        any(demand.ask.compute for demand in wanted),
    )


def _cards_for(wanted: list[Demand], mix: Mix) -> NDArray[np.float64]:
    milli = sum(demand.pods * _milli(demand.ask, mix.card_totals[-1]) for demand in wanted)
    cpu = sum(demand.pods * demand.ask.cpu_milli for demand in wanted)
    memory = _MIB * sum(demand.pods * demand.ask.memory_mib for demand in wanted)
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
    prices = np.rint(excess * (_PRICE * _FINE)).astype(np.int64)
    return np.append(prices, 0)


def _costs(tables: Tables, columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    if len(nodes) <= _FEW and _is_plain(tables, ask):
        costs = [_cost_of_one(tables, columns, ask, node) for node in nodes.tolist()]
        return np.array(costs, dtype=np.int64)
    return _costs_of_many(tables, columns, ask, nodes)


def _is_plain(tables: Tables, ask: Ask) -> bool:
    """All cards are alike and compute is not counted: what there is nearly everywhere."""
    if tables.counts_compute or ask.compute:
        return False
    return 0 < tables.only_total >= ask.memory


def _cost_of_one(tables: Tables, columns: CardColumns, ask: Ask, node: int) -> int:
    """The same as `_costs_of_many`, number by number: between two decisions few nodes change."""
    usable, worth, begin, memory = (
        tables.usable_list,
        tables.worth_list,
        tables.only_total,
        ask.memory,
    )
    free = columns.card_free[:, node].tolist()
    if max(free) > begin:  # a kind of card that the mix has not heard of yet
        return int(_costs_of_many(tables, columns, ask, np.array([node]))[0])
    before = sum([usable[begin + part] for part in free])
    if memory:
        rest = [worth[begin + part] - worth[begin + part - memory] for part in free]
        lost = min(rest) if ask.cards == 1 else sum(sorted(rest)[: ask.cards])
        taken = ask.cards * memory * WHOLE // begin
        lost, spent = _parted(lost)
    else:
        lost = spent = taken = ask.cards * WHOLE
    after = before - spent
    rises = 0.0
    for host, asked, cards_for in zip(
        columns.host_free[:, node].tolist(),
        (ask.cpu_milli, ask.memory_mib * _MIB),
        tables.cards_for.ravel().tolist(),
        strict=True,
    ):
        fed = host * cards_for
        rises += max(after - (fed - asked * cards_for), 0.0) - max(before - fed, 0.0)
    cost: int = (lost - taken) * _FINE + min(after, _PULLED_CARDS * WHOLE) * _PULL_FINE
    cost += math.floor(rises * _HALF)
    if tables.price is not None:
        model = min(int(columns.model[node]), len(tables.price) - 1)
        cost += taken * int(tables.price[model])
    return cost // _FINE * BULKS + int(columns.bulk[node])


def _costs_of_many(tables: Tables, columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    free = columns.card_free.take(nodes, axis=1)
    total = None if tables.only_total else columns.card_total.take(nodes, axis=1)
    at = _places(tables, columns, free, total, nodes)
    usable = tables.usable.take(at, mode="clip")
    before = np.add.reduce(usable)
    lost: Ints | int
    spent: Ints | int
    taken: Ints | int
    if ask.memory:
        rest = tables.worth.take(at, mode="clip")
        rest -= tables.worth.take(at - _asked(ask, total, tables), mode="clip")
        lost, spent = _parted(rest.min(axis=0) if ask.cards == 1 else _fewest(rest, ask.cards))
        largest = tables.only_total if total is None else total.max(axis=0)
        taken = ask.cards * ask.memory * WHOLE // largest
    else:
        lost = spent = taken = ask.cards * WHOLE
    after = before - spent
    costs = (lost - taken) * _FINE + np.minimum(after, _PULLED_CARDS * WHOLE) * _PULL_FINE
    costs += _starved(tables, columns.host_free.take(nodes, axis=1), ask, before, after)
    if tables.price is not None:
        costs += taken * tables.price.take(columns.model.take(nodes), mode="clip")
    ranked: Ints = costs // _FINE * BULKS + columns.bulk.take(nodes)
    return ranked


def _parted(difference: Number) -> tuple[Number, Number]:
    """What is lost by a difference of `Tables.worth`, and what of it was usable."""
    lost = (difference + _FLAGS // 2) // _FLAGS
    return lost, lost + (difference - lost * _FLAGS) * _PARTLY_USED


def _places(
    tables: Tables, columns: CardColumns, free: Ints, total: Ints | None, nodes: Ints
) -> Ints:
    """(C, k): where the table says what the free part of each card is good for."""
    if tables.counts_compute:
        size = tables.only_total if total is None else total
        free = np.minimum(free, columns.card_compute.take(nodes, axis=1) * size // 100)
    first = tables.only_total if total is None else tables.first.take(total, mode="clip")
    places: Ints = free + first
    return places


def _asked(ask: Ask, total: Ints | None, tables: Tables) -> Ints | int:
    """Of each card: memory, or compute if that is the larger part of it."""
    if not ask.compute:
        return ask.memory
    size = tables.only_total if total is None else total
    asked: Ints = np.maximum(ask.memory, ask.compute * size // 100)
    return asked


def _fewest(rest: Ints, cards: int) -> Ints:
    summed: Ints = np.sort(rest, axis=0)[:cards].sum(axis=0)
    return summed


def _starved(tables: Tables, host: Ints, ask: Ask, before: Ints, after: Ints) -> Ints:
    """Half of the GPU that CPU, and of that which memory, can feed no more."""
    asked = np.array([[ask.cpu_milli], [ask.memory_mib * _MIB]]) * tables.cards_for
    fed = host * tables.cards_for
    rises = np.maximum(after - (fed - asked), 0) - np.maximum(before - fed, 0)
    starved: Ints = np.floor(np.add.reduce(rises) * _HALF).astype(np.int64)
    return starved


def _cards(tables: Tables, columns: CardColumns, ask: Ask, node: int) -> tuple[int, ...]:
    fitting = fitting_cards(columns, ask, node)
    if ask.memory and len(fitting) > ask.cards:
        now, left = _before_and_after(tables, columns, ask, node)
        worth, last = tables.worth_list, len(tables.worth_list) - 1
        fitting.sort(key=lambda card: worth[min(now[card], last)] - worth[min(left[card], last)])
    return tuple(sorted(fitting[: ask.cards]))


def _before_and_after(
    tables: Tables, columns: CardColumns, ask: Ask, node: int
) -> tuple[list[int], list[int]]:
    """Where each card of the node stands in the table, without the ask's part and with it."""
    if _is_plain(tables, ask):
        now = [tables.only_total + part for part in columns.card_free[:, node].tolist()]
        return now, [at - ask.memory for at in now]
    total = None if tables.only_total else columns.card_total[:, node : node + 1]
    free = columns.card_free[:, node : node + 1]
    places = _places(tables, columns, free, total, np.array([node]))
    left = places - _asked(ask, total, tables)
    return places[:, 0].tolist(), left[:, 0].tolist()
