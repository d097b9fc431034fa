"""The residue policy for one node with plain numbers; must agree with `residue.py`.

Between two decisions few nodes change, and for few nodes plain numbers are faster than vectors.
Many nodes have cards with the same free parts, so results are cached by those.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from math import floor
from typing import NamedTuple

from gpupool.engine.policies.policy import BULKS, WHOLE, Ask, CardColumns
from gpupool.engine.policies.residue_tables import (
    FINE,
    HALF,
    MIB,
    PULL_FINE,
    PULLED_CARDS,
    Tables,
    parted,
)

_REMEMBERED = 2**14  # cached results


class Judged(NamedTuple):
    """The result for the cards of a node and an ask."""

    before: int  # what is usable of them all
    lost: int  # worth that is lost
    spent: int  # usable part that is lost
    taken: int
    cards: tuple[int, ...]  # the best for a share; of whole cards: none


# Arguments: free and total of each card (totals empty: all the same), the ask's memory and cards.
Judge = Callable[[tuple[int, ...], tuple[int, ...], int, int], Judged | None]


def judge_of(tables: Tables) -> Judge:
    # A cache of its own for each policy: it goes with the tables that its results are made from.
    return lru_cache(_REMEMBERED)(partial(_judged, tables))


def _judged(
    tables: Tables, free: tuple[int, ...], totals: tuple[int, ...], memory: int, cards: int
) -> Judged | None:
    first, only, worth = tables.first_list, tables.only_total, tables.worth_list
    if max(memory, *(totals or free)) >= len(first):
        return None
    if only:
        places = [only + part for part in free]
    else:
        places = [first[total] + part for total, part in zip(totals, free, strict=True)]
    before = sum([tables.usable_list[at] for at in places])
    if not memory:
        return Judged(before, cards * WHOLE, cards * WHOLE, cards * WHOLE, ())
    losses = [worth[at] - worth[at - memory] for at in places]  # very large where it does not fit
    taken = cards * memory * WHOLE // (only or max(totals))
    if cards == 1:
        least = min(losses)
        return Judged(before, *parted(least), taken, (losses.index(least),))
    best = sorted(range(len(losses)), key=losses.__getitem__)[:cards]
    return Judged(before, *parted(sum([losses[card] for card in best])), taken, tuple(sorted(best)))


def judged_on(
    tables: Tables, judge: Judge, columns: CardColumns, ask: Ask, node: int
) -> Judged | None:
    """None: compute counts, or a card is larger than any in the mix: `residue.py` must do it."""
    if tables.counts_compute or ask.compute:
        return None
    free = tuple(columns.card_free[:, node].tolist())
    totals: tuple[int, ...] = ()
    if not tables.only_total:
        totals = tuple(columns.card_total[:, node].tolist())
    return judge(free, totals, ask.memory, ask.cards)


def cost_of_one(tables: Tables, judged: Judged, columns: CardColumns, ask: Ask, node: int) -> int:
    before, lost, spent, taken, _ = judged
    after = before - spent
    cost: int = (lost - taken) * FINE + min(after, PULLED_CARDS * WHOLE) * PULL_FINE
    host, (by_cpu, by_memory) = columns.host_free, tables.cards_for_list
    rises = _rise(host.item(0, node), ask.cpu_milli, by_cpu, before, after)
    rises += _rise(host.item(1, node), ask.memory_mib * MIB, by_memory, before, after)
    cost += floor(rises * HALF)
    return cost // FINE * BULKS + columns.bulk.item(node)


def _rise(host: int, asked: int, cards_for: float, before: int, after: int) -> float:
    """How much more GPU is unusable for lack of this host resource."""
    fed = host * cards_for
    then, now = after - (fed - asked * cards_for), before - fed
    return (then if then > 0 else 0.0) - (now if now > 0 else 0.0)
