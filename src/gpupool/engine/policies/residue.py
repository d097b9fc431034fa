"""residue: the node on which the least GPU becomes useless for later pods. The default policy.

The cost of a node is how much this sum grows, in thousandths of a card:
- the residue of every card (`cutting.py`), and a little for each partly used card;
- half of the GPU that could not be used for lack of CPU, and half of that for lack of memory;
- a little for every usable card that would remain: so the fullest node is filled first;
Beside it come the prices of `scarcity.py`: what the pod takes from pods that need this machine.
Less than a thousandth does not count. Among equals the smaller machine is taken, then the first
node: so large machines, and the last ones, stay free for large pods.
"""

from functools import partial

import numpy as np

from gpupool.engine.kernel import LIBRARY, ResidueView
from gpupool.engine.policies.best_fit import left_over
from gpupool.engine.policies.free_cards import fitting_cards, tightest_cards
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import BULKS, WHOLE, Ask, CardColumns, Ints, Policy, of_nodes
from gpupool.engine.policies.residue_of_one import (
    Judge,
    cost_of_one,
    judge_of,
    judged_on,
)
from gpupool.engine.policies.residue_tables import (
    FINE,
    HALF,
    MIB,
    PULL_FINE,
    PULLED_CARDS,
    Tables,
    parted,
    tables_of,
)


def residue(mix: Mix) -> Policy:
    if not any(demand.ask.cards for demand in mix.demands) or not mix.card_totals:
        return Policy("residue", left_over, tightest_cards)  # no pods counted yet
    tables = tables_of(mix)
    judge = judge_of(tables)
    compiled = ResidueView(
        tables.usable,
        tables.worth,
        tables.first,
        tables.only_total,
        tables.counts_compute,
        tables.cards_for_list,
    )
    return Policy(
        "residue",
        partial(_costs, tables),
        partial(_cards, tables, judge, compiled),
        partial(_cost, tables, judge),
        usable=partial(_usable, tables),
        compiled=compiled,
    )


def _costs(tables: Tables, columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    free = of_nodes(columns.card_free, nodes)
    total = None if tables.only_total else of_nodes(columns.card_total, nodes)
    at = _places(tables, columns, free, total, nodes)
    usable = tables.usable.take(at, mode="clip")
    before = np.add.reduce(usable)
    lost: Ints | int
    spent: Ints | int
    taken: Ints | int
    if ask.memory:
        rest = tables.worth.take(at, mode="clip")
        rest -= tables.worth.take(at - _asked(ask, total, tables), mode="clip")
        lost, spent = parted(rest.min(axis=0) if ask.cards == 1 else _fewest(rest, ask.cards))
        largest = tables.only_total if total is None else total.max(axis=0)
        taken = ask.cards * ask.memory * WHOLE // largest
    else:
        lost = spent = taken = ask.cards * WHOLE
    after = before - spent
    costs = (lost - taken) * FINE + np.minimum(after, PULLED_CARDS * WHOLE) * PULL_FINE
    costs += _starved(tables, of_nodes(columns.host_free, nodes), ask, before, after)
    ranked: Ints = costs // FINE * BULKS + columns.bulk.take(nodes)
    return ranked


def _usable(tables: Tables, columns: CardColumns) -> Ints:
    total = None if tables.only_total else columns.card_total
    first = tables.only_total if total is None else tables.first.take(total, mode="clip")
    usable: Ints = tables.usable.take(columns.card_free + first, mode="clip").sum(axis=0)
    return usable


def _places(
    tables: Tables, columns: CardColumns, free: Ints, total: Ints | None, nodes: Ints
) -> Ints:
    """Index into the tables for the free part of each card; shape (cards of a node, nodes)."""
    if tables.counts_compute:
        size = tables.only_total if total is None else total
        free = np.minimum(free, of_nodes(columns.card_compute, nodes) * size // 100)
    first = tables.only_total if total is None else tables.first.take(total, mode="clip")
    places: Ints = free + first
    return places


def _asked(ask: Ask, total: Ints | None, tables: Tables) -> Ints | int:
    """What the ask takes of each card: memory, or compute if that is the larger part."""
    if not ask.compute:
        return ask.memory
    size = tables.only_total if total is None else total
    asked: Ints = np.maximum(ask.memory, ask.compute * size // 100)
    return asked


def _fewest(rest: Ints, cards: int) -> Ints:
    summed: Ints = np.sort(rest, axis=0)[:cards].sum(axis=0)
    return summed


def _starved(tables: Tables, host: Ints, ask: Ask, before: Ints, after: Ints) -> Ints:
    """How much more GPU is unusable for lack of CPU and for lack of memory, halved."""
    asked = np.array([[ask.cpu_milli], [ask.memory_mib * MIB]]) * tables.cards_for
    fed = host * tables.cards_for
    rises = np.maximum(after - (fed - asked), 0) - np.maximum(before - fed, 0)
    starved: Ints = np.floor(np.add.reduce(rises) * HALF).astype(np.int64)
    return starved


def _cost(tables: Tables, judge: Judge, columns: CardColumns, ask: Ask, node: int) -> int:
    judged = judged_on(tables, judge, columns, ask, node)
    if judged is None:
        return int(_costs(tables, columns, ask, np.array([node]))[0])
    return cost_of_one(tables, judged, columns, ask, node)


def _cards(
    tables: Tables, judge: Judge, compiled: ResidueView, columns: CardColumns, ask: Ask, node: int
) -> tuple[int, ...]:
    view = columns.view
    if view is not None and LIBRARY is not None and _is_one_share(tables, ask):
        return (LIBRARY.best_card(view.address, compiled.address, node, ask.memory),)
    judged = judged_on(tables, judge, columns, ask, node)
    return _least_lost(tables, columns, ask, node) if judged is None else judged.cards


def _is_one_share(tables: Tables, ask: Ask) -> bool:
    """Of memory alone, and not larger than any card of the mix."""
    counts_compute = tables.counts_compute or ask.compute
    return ask.cards == 1 and not counts_compute and ask.memory < len(tables.first_list)


def _least_lost(tables: Tables, columns: CardColumns, ask: Ask, node: int) -> tuple[int, ...]:
    """The cards that lose the least worth when the ask is placed on them."""
    total = None if tables.only_total else columns.card_total[:, node : node + 1]
    free = columns.card_free[:, node : node + 1]
    at = _places(tables, columns, free, total, np.array([node]))
    losses = tables.worth.take(at, mode="clip")
    losses -= tables.worth.take(at - _asked(ask, total, tables), mode="clip")
    fitting = fitting_cards(columns, ask, node)
    fitting.sort(key=losses[:, 0].tolist().__getitem__)
    return tuple(sorted(fitting[: ask.cards]))
