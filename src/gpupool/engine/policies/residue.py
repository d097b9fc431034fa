"""residue: where the least GPU becomes useless for the pods that this cluster sees. The default.

A pod goes where this sum rises least, in thousandths of a card:
- the residue of every card (`cutting.py`), and a little for a card that is partly used;
- half of the GPU that the node's CPU, and of that which its memory, could not feed any more;
- a little for every usable card that the node would keep: the fullest node first;
- what the pod takes, times how much pods that are bound to GPU models compete for this one.
Among equals the smaller machine is taken, so that large ones stay free for large pods.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

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
# Costs are counted in this part of a thousandth of a card, so that all of it is whole numbers.
_FINE = 250
_HALF = _FINE // 2
_PULL_FINE = _PULL * _FINE // WHOLE
_NO_ROOM = 2**20


@dataclass(frozen=True, slots=True)
class Tables:
    """What a mix comes to."""

    usable: Ints  # for every size of card, what 0..total free are good for; one after the other
    first: Ints  # where a size of card begins in there, by its total
    cpu_for_card: int  # thousandths
    memory_for_card: int  # MiB
    price: Ints | None  # by model: what a thousandth of a card costs; None: all the same
    only_total: int  # of all cards; 0: they differ
    counts_compute: bool  # whether any pod asks for a share of compute


class Cards(NamedTuple):
    """Some nodes' cards, (C, k) each."""

    free: Ints
    compute: Ints | None  # None: nobody asks for it
    total: Ints
    first: Ints  # where their sizes begin in `Tables.usable`


def residue(mix: Mix) -> Policy:
    if not any(demand.ask.cards for demand in mix.demands) or not mix.card_totals:
        return Policy("residue", left_over, tightest_cards)  # nothing is known yet
    tables = tables_of(mix)
    return Policy("residue", partial(_costs, tables), partial(_cards, tables))


def tables_of(mix: Mix) -> Tables:
    wanted = [demand for demand in mix.demands if demand.ask.cards]
    first = np.zeros(max(mix.card_totals) + 1, dtype=np.int64)
    parts: list[Ints] = []
    begin = 0
    for total in mix.card_totals:
        usable = usable_milli(_demand_by_size(wanted, total), total)
        usable[1:-1] -= _PARTLY_USED
        first[total] = begin
        begin += len(usable)
        parts.append(usable)
    cards = sum(demand.pods * _milli(demand.ask, mix.card_totals[-1]) for demand in wanted) / WHOLE
    cpu = sum(demand.pods * demand.ask.cpu_milli for demand in wanted)
    memory = sum(demand.pods * demand.ask.memory_mib for demand in wanted)
    return Tables(
        np.concatenate(parts),
        first,
        max(1, round(cpu / cards)),
        max(1, round(memory / cards)),
        _prices(wanted, mix) if any(demand.models for demand in wanted) else None,
        mix.card_totals[0] if len(mix.card_totals) == 1 else 0,
        any(demand.ask.compute for demand in wanted),
    )


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
    total = columns.card_total.take(nodes, axis=1)
    cards = Cards(
        columns.card_free.take(nodes, axis=1),
        columns.card_compute.take(nodes, axis=1) if tables.counts_compute else None,
        total,
        tables.first.take(total, mode="clip"),
    )
    usable = _usable(tables, cards)
    before = usable.sum(axis=0)
    taken, lost = _taken_and_lost(tables, cards, ask, usable)
    after = before - lost
    costs = (lost - taken) * _FINE + np.minimum(after, _PULLED_CARDS * WHOLE) * _PULL_FINE
    for free, asked, for_card in (
        (columns.cpu_free, ask.cpu_milli, tables.cpu_for_card),
        (columns.memory_free, ask.memory_mib, tables.memory_for_card),
    ):
        here = free.take(nodes) * WHOLE
        starved = np.maximum(after - (here - asked * WHOLE) // for_card, 0)
        starved -= np.maximum(before - here // for_card, 0)
        costs += starved * _HALF
    if tables.price is not None:
        costs += taken * tables.price.take(columns.model.take(nodes), mode="clip")
    ranked: Ints = costs * BULKS + columns.bulk.take(nodes)
    return ranked


def _taken_and_lost(
    tables: Tables, cards: Cards, ask: Ask, usable: Ints
) -> tuple[Ints | int, Ints | int]:
    """What the ask takes of the node, and what becomes unusable by it, its own part included."""
    if not ask.memory:
        return ask.cards * WHOLE, ask.cards * WHOLE
    lost = usable - _usable(tables, _without(cards, ask))
    lost[cards.free < ask.memory] = _NO_ROOM
    if cards.compute is not None:
        lost[cards.compute < ask.compute] = _NO_ROOM
    taken = ask.cards * ask.memory * WHOLE // (tables.only_total or cards.total.max(axis=0))
    if ask.cards == 1:
        return taken, lost.min(axis=0)
    return taken, np.sort(lost, axis=0)[: ask.cards].sum(axis=0)


def _without(cards: Cards, ask: Ask) -> Cards:
    """As if the ask were on every one of them."""
    compute = None if cards.compute is None else cards.compute - ask.compute
    return Cards(cards.free - ask.memory, compute, cards.total, cards.first)


def _usable(tables: Tables, cards: Cards) -> Ints:
    free = cards.free
    if cards.compute is not None:
        free = np.minimum(free, cards.compute * cards.total // 100)
    return tables.usable.take(cards.first + free, mode="clip")


def _cards(tables: Tables, columns: CardColumns, ask: Ask, node: int) -> tuple[int, ...]:
    if not ask.memory:
        return tightest_cards(columns, ask, node)
    total = columns.card_total[:, node]
    cards = Cards(
        columns.card_free[:, node],
        columns.card_compute[:, node] if tables.counts_compute else None,
        total,
        tables.first.take(total, mode="clip"),
    )
    lost = (_usable(tables, cards) - _usable(tables, _without(cards, ask))).tolist()
    fitting = sorted(fitting_cards(columns, ask, node), key=lost.__getitem__)
    return tuple(sorted(fitting[: ask.cards]))
