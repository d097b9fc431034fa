"""What residue says of one node, number by number: the same as `residue.py` says of many at once.

Between two decisions few nodes change, and for few nodes plain numbers are faster than vectors.
"""

from math import floor

from gpupool.engine.policies.bulk import BULKS
from gpupool.engine.policies.policy import WHOLE, Ask, CardColumns
from gpupool.engine.policies.residue_tables import (
    FINE,
    HALF,
    MIB,
    PULL_FINE,
    PULLED_CARDS,
    Tables,
    parted,
)


def cost_of_one(tables: Tables, columns: CardColumns, ask: Ask, node: int) -> int | None:
    """None: compute counts, or there is a larger card than the mix has heard of."""
    places = _places(tables, columns, ask, node)
    if places is None:
        return None
    before = sum([tables.usable_list[at] for at in places])
    cards, memory = ask.cards, ask.memory
    if memory:
        losses = _losses(tables, places, memory)
        lost, spent = parted(min(losses) if cards == 1 else sum(sorted(losses)[:cards]))
        total = tables.only_total or int(columns.card_total[:, node].max())
        taken = cards * memory * WHOLE // total
    else:
        lost = spent = taken = cards * WHOLE
    after = before - spent
    cost: int = (lost - taken) * FINE + min(after, PULLED_CARDS * WHOLE) * PULL_FINE
    host, (by_cpu, by_memory) = columns.host_free, tables.cards_for_list
    rises = _rise(host.item(0, node), ask.cpu_milli, by_cpu, before, after)
    rises += _rise(host.item(1, node), ask.memory_mib * MIB, by_memory, before, after)
    cost += floor(rises * HALF)
    if tables.price is not None:
        model = min(int(columns.model[node]), len(tables.price) - 1)
        cost += taken * int(tables.price[model])
    return cost // FINE * BULKS + int(columns.bulk[node])


def losses_of_one(tables: Tables, columns: CardColumns, ask: Ask, node: int) -> list[int] | None:
    """By card: what it is worth less, with the ask's part taken; None: as for `cost_of_one`."""
    places = _places(tables, columns, ask, node)
    return None if places is None else _losses(tables, places, ask.memory)


def _losses(tables: Tables, places: list[int], memory: int) -> list[int]:
    """A card that it does not fit on loses far more than any on which it does."""
    worth = tables.worth_list
    return [worth[at] - worth[at - memory] for at in places]


def _places(tables: Tables, columns: CardColumns, ask: Ask, node: int) -> list[int] | None:
    """Where the tables say what the free part of each card is good for."""
    if tables.counts_compute or ask.compute:
        return None
    first, only = tables.first_list, tables.only_total
    free: list[int] = columns.card_free[:, node].tolist()
    if only:
        return [only + part for part in free] if max(free) <= only >= ask.memory else None
    totals = columns.card_total[:, node].tolist()
    if max(totals) >= len(first) or ask.memory >= len(first):
        return None
    return [first[total] + part for total, part in zip(totals, free, strict=True)]


def _rise(host: int, asked: int, cards_for: float, before: int, after: int) -> float:
    """Of the GPU that what is free of the host cannot feed."""
    fed = host * cards_for
    then, now = after - (fed - asked * cards_for), before - fed
    return (then if then > 0 else 0.0) - (now if now > 0 else 0.0)
