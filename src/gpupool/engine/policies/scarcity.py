"""Prices of free cards, by class of machine: what a pod takes away from pods that need just that.

A pod may be bound to some machines: by its models, by the number of its cards, by its CPU and
memory, and because some give out their cards only whole, or only shared. Such a set of machines is
short if the pods that are bound to it will want more than is free there. How likely that is, is the
price of a card on these machines, 0 to 1:

    wanted     what these pods would hold if the cluster were full, by their part of the mix; more
               if more is asked for than fits
    running    what they hold now
    free       what is free on these machines now

Wanted minus running is what is still to come. It varies as the number of arrivals does (Poisson).
Pods that need just one model count as if a few of them had been seen for every model: the first
pods would otherwise fill the few machines of a model that later ones need.
Sets are looked at from small to large, and what does not fit into a small set counts no more in
those around it: it is lost, wherever other pods go.

The same is asked for every number of cards that pods want at once, counted in nodes with so many
untouched cards. So a machine of eight cards that is empty is worth more than its single cards as
soon as such machines become few, and nothing more before. Most of that worth is lost with the first
card that is taken, because pods leave again, and the last pods on a machine keep it from the large.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import erfc, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpupool.engine.kernel import LIBRARY, Library, likely_by, spare_by, worth_by
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.places import (
    MOST_CARDS,
    Place,
    own_of,
    places_of,
    unserved_of,
    worth_by_size,
    worth_of_places,
)
from gpupool.engine.policies.policy import (
    BULKS,
    WHOLE,
    Ask,
    Floats,
    Ints,
    Prices,
    PriceTable,
    price_table,
)

MOST_MACHINES = 64  # classes of machines that have a number of their own
# Of a table of prices. Nodes may be newer than the market: their classes cost nothing until it is
# made anew.
_USES = 1 + MOST_MACHINES * (MOST_CARDS + 1) * 2
_NO_PRICES = bytes(8 * _USES)
_MOST_KNOWN = 8_192  # asks of which `accepted` remembers the machines
_MOST_SETS = 64  # different sets of machines: those with the most demand
_MOST_SIZES = 4  # different numbers of cards
# Pods that are counted for each model although they were not seen. With the first hundred pods they
# are much, after some thousands nothing.
_UNSEEN = 2
# Pods of several cards find up to this part of the places free that they would have in a full
# cluster; more are not left to them. Places that nobody takes, for a reason that nobody thought of,
# are then few.
_MOST_LEFT = 0.15

Bools = NDArray[np.bool_]


class Gives(NamedTuple):
    """What pods can have of a machine's cards."""

    whole: bool = True
    shares: bool = True


@dataclass(frozen=True, slots=True)
class Machines:
    """The classes of machines, M of them. Each is a list over the classes."""

    model: list[int]
    cards: list[int]
    cpu_milli: list[int]
    memory_mib: list[int]
    gives: list[Gives]
    # What `accepted` has found, because the same is asked again with every new mix.
    known: dict[tuple[Ask, tuple[int, ...]], int] = field(
        default_factory=dict, compare=False, repr=False
    )


@dataclass(frozen=True, slots=True)
class Market:
    """What is wanted of each set of machines, S of them, small sets first."""

    machines: Machines
    sizes: tuple[int, ...]  # numbers of cards, Z of them; the first is 1
    places: tuple[tuple[Place, ...], ...]  # (M, Z)
    sets: dict[int, int]  # the number of each set, by the bits of its machines
    has: Bools  # (S, M) which machines it has
    inside: Bools  # (S, S) which sets lie in it, itself too
    wanted: Floats  # (S, Z) thousandths of cards for size 1, else nodes
    variance: Floats  # (S, Z)

    def amounts(self, ask: Ask, total: int) -> list[int]:
        return _amounts(ask, total, self.sizes)


def milli_of(ask: Ask, total: int) -> int:
    """Thousandths of a card that an ask takes on cards of this size."""
    return ask.cards * min(WHOLE, (ask.memory or total) * WHOLE // total)


def accepted(ask: Ask, models: tuple[int, ...], machines: Machines) -> int:
    """The machines on which the ask fits when they are empty, as bits."""
    found = machines.known.get((ask, models))
    if found is None:
        if len(machines.known) >= _MOST_KNOWN:
            machines.known.clear()
        found = machines.known[ask, models] = _accepted(ask, models, machines)
    return found


def _accepted(ask: Ask, models: tuple[int, ...], machines: Machines) -> int:
    rows = zip(machines.model, machines.cards, machines.cpu_milli, machines.memory_mib, strict=True)
    return sum(
        1 << at
        for at, (model, cards, cpu, memory) in enumerate(rows)
        if (machines.gives[at].shares if ask.memory else machines.gives[at].whole)
        and cards >= ask.cards
        and cpu >= ask.cpu_milli
        and memory >= ask.memory_mib
        and (not models or model in models)
    )


def market_of(mix: Mix, machines: Machines) -> Market:
    total = mix.card_totals[-1]
    sizes = _sizes(mix)
    # By the bits of a set, for each size.
    wanted: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(sizes))
    variance: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(sizes))
    for demand in mix.demands:
        bits = accepted(demand.ask, demand.models, machines) if demand.ask.cards else 0
        if not bits:
            continue
        pods, here, varies = demand.pods, wanted[bits], variance[bits]
        for at, amount in enumerate(_amounts(demand.ask, total, sizes)):
            here[at] += pods * amount
            varies[at] += pods * amount * amount
    most = sorted(wanted, key=lambda bits: (-wanted[bits][0], bits))[:_MOST_SETS]
    most += _add_unseen(mix, machines, wanted, variance)[: _MOST_SETS - len(most)]
    order = sorted(most, key=lambda bits: (bits.bit_count(), bits))
    asked = sum(amounts[0] for amounts in wanted.values()) or 1
    # From the pods that were counted to those that a full cluster holds.
    scale = WHOLE * sum(mix.cards_of_model) / asked
    count = len(machines.cards)
    shape = (len(order), len(sizes))
    return Market(
        machines,
        sizes,
        _places_on(mix, machines, sizes),
        {bits: at for at, bits in enumerate(order)},
        np.array(
            [[bits >> at & 1 for at in range(count)] for bits in order], dtype=np.bool_
        ).reshape(len(order), count),
        np.array([[not small & ~bits for small in order] for bits in order], dtype=np.bool_),
        np.array([wanted[bits] for bits in order], dtype=np.float64).reshape(shape) * scale,
        # The future varies, and so does the sample that the mix was learned from.
        np.array([variance[bits] for bits in order], dtype=np.float64).reshape(shape)
        * scale
        * (1 + scale),
    )


def _add_unseen(
    mix: Mix,
    machines: Machines,
    wanted: defaultdict[int, list[int]],
    variance: defaultdict[int, list[int]],
) -> list[int]:
    """Adds pods of the mean size, and returns the sets that had none. Places for pods of several
    cards are not wanted by pods that nobody has seen."""
    if not wanted:
        return []
    seen = set(wanted)
    pods = sum(demand.pods for demand in mix.demands if demand.ask.cards)
    mean, square = (sum(row[0] for row in rows.values()) // pods for rows in (wanted, variance))
    of_model: defaultdict[int, int] = defaultdict(int)
    for at, (model, cards) in enumerate(zip(machines.model, machines.cards, strict=True)):
        if cards:
            of_model[model] |= 1 << at
    for bits in of_model.values():
        wanted[bits][0] += _UNSEEN * mean
        variance[bits][0] += _UNSEEN * square
    return [bits for bits in of_model.values() if bits not in seen]


def _sizes(mix: Mix) -> tuple[int, ...]:
    pods: dict[int, int] = {}
    for demand in mix.demands:
        if 1 < demand.ask.cards <= MOST_CARDS:
            pods[demand.ask.cards] = pods.get(demand.ask.cards, 0) + demand.pods * demand.ask.cards
    most = sorted(pods, key=lambda cards: (-pods[cards], cards))[: _MOST_SIZES - 1]
    return (1, *sorted(most))


def _places_on(
    mix: Mix, machines: Machines, sizes: tuple[int, ...]
) -> tuple[tuple[Place, ...], ...]:
    fitting = {size: list[tuple[int, Demand]]() for size in sizes[1:]}
    for demand in mix.demands:
        if demand.ask.cards in fitting:
            bits = accepted(demand.ask, demand.models, machines)
            fitting[demand.ask.cards].append((bits, demand))
    return tuple(
        (Place(1), *(_place(at, size, found) for size, found in fitting.items()))
        for at in range(len(machines.cards))
    )


def _place(machine: int, size: int, found: Iterable[tuple[int, Demand]]) -> Place:
    fitting = [demand for bits, demand in found if bits >> machine & 1]
    cpu = _middle((demand.ask.cpu_milli, demand.pods) for demand in fitting)
    return Place(size, cpu, _middle((demand.ask.memory_mib, demand.pods) for demand in fitting))


def _middle(amounts: Iterable[tuple[int, int]]) -> int:
    """Of amounts with the number of pods: what half of the pods do not exceed; 0 without pods."""
    ordered = sorted(amounts)
    left = sum(pods for _, pods in ordered) / 2
    for amount, pods in ordered:
        left -= pods
        if left <= 0:
            return amount
    return 0


def _amounts(ask: Ask, total: int, sizes: tuple[int, ...]) -> list[int]:
    return [milli_of(ask, total), *(ask.cards // size for size in sizes[1:])]


def prices_of(
    market: Market,
    running: Floats,
    free: Floats,
    overload: float = 1.0,
    *,
    keeps_places: bool = False,
) -> Prices:
    """`running`: (S, Z) what pods bound to each set hold; `free`: (M, Z) of each class.

    `overload`: how many times as much is asked for as the cluster can hold, at least 1.
    `keeps_places`: whether pods leave the last places to larger ones (`last_places.py`).
    """
    spare, spread = _to_spare(market, running, free, overload)
    machines = market.machines
    likely_in = likely_of if LIBRARY is None else partial(likely_by, LIBRARY)
    likely = likely_in(market.has, spare, spread)
    single: Ints = np.rint(likely[:, 0] * WHOLE).astype(np.int64)
    places = None
    if keeps_places:
        wanted = market.wanted * overload
        unserved = unserved_of(wanted, running, market.sizes)
        missed = np.where(_few_are_free(market, wanted, free), likely, 0.0)
        places = places_of(missed, market.places, unserved)
    if LIBRARY is None:
        worth = worth_of(likely, market.sizes, machines.cards)
        return Prices(lru_cache(256)(partial(prices_for, worth, single)), places)
    worth = worth_by(LIBRARY, likely, market.sizes, machines.cards, MOST_CARDS)
    addresses = (worth.ctypes.data, single.ctypes.data)
    return Prices(lru_cache(256)(partial(_prices_by, LIBRARY, worth, single, addresses)), places)


def _to_spare(
    market: Market, running: Floats, free: Floats, overload: float
) -> tuple[Floats, Floats]:
    there_is = market.has.astype(np.float64) @ free
    coming, variance = market.wanted * overload - running, market.variance * overload
    to_spare = spare_of if LIBRARY is None else partial(spare_by, LIBRARY)
    return to_spare(market.inside, there_is, coming, variance)


def _few_are_free(market: Market, wanted: Floats, free: Floats) -> Bools:
    """(M, Z): where places are left to larger pods, because of a set of machines that has few."""
    there_is = market.has.astype(np.float64) @ free
    # Each larger pod counts as one, because a part of a machine may become a place for it.
    pods = np.cumsum(own_of(wanted, market.sizes)[:, ::-1], axis=1)[:, ::-1]
    few = there_is < 1 + _MOST_LEFT * (market.inside.astype(np.float64) @ pods)
    few[:, 0] = True  # single cards are nobody's place, and have their price
    return np.asarray((market.has[:, :, np.newaxis] & few[:, np.newaxis]).any(axis=0))


def likely_of(has: Bools, spare: Floats, spread: Floats) -> Floats:
    """(M, Z): how likely it is that cards of each class will be missed. As `likely_by`."""
    flat = zip(spare.ravel().tolist(), spread.ravel().tolist(), strict=True)
    risks = [erfc(left / (sqrt(2) * sigma)) / 2 if sigma else 0.0 for left, sigma in flat]
    short = np.where(has[:, :, np.newaxis], np.array(risks).reshape(len(spare), 1, -1), 0.0)
    likely = short.max(axis=0, initial=0.0)
    # That any set is short, not only the shortest: the set of all machines is nearly always as
    # short as sets of few machines are while little is known, and must not hide them.
    likely[:, 0] = 1 - (1 - short[:, :, 0]).prod(axis=0)
    # Rounded: where no size is scarce, prices must be exactly proportional to what is taken, or a
    # thousandth would decide between nodes that are equal.
    rounded: Floats = np.rint(likely * WHOLE) / WHOLE
    return rounded


def spare_of(
    inside: Bools, there_is: Floats, coming: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """(S, Z) what each set has more than will come, and how much that varies.

    Changes `coming` and `variance`. As `spare_by`, without it.
    """
    found, spreads = np.zeros_like(coming), np.zeros_like(coming)
    for at, here_is in enumerate(inside):
        here = coming[here_is]
        more = np.maximum(here, 0).sum(axis=0)
        back = np.minimum(here, 0).sum(axis=0)
        spare = there_is[at] - more - back
        found[at], spreads[at] = spare, np.sqrt(variance[here_is].sum(axis=0))
        if (spare < 0).any():
            part = np.clip((there_is[at] - back) / np.maximum(more, 1e-9), 0, 1)
            kept = np.where(coming > 0, part, 1.0)
            kept[~here_is] = 1.0
            coming *= kept
            variance *= kept
    return found, spreads


def worth_of(likely: Floats, sizes: Sequence[int], machine_cards: Sequence[int]) -> Ints:
    """(M, MOST_CARDS + 1): what so many untouched cards of a node are worth, in thousandths."""
    cards = np.array(machine_cards)
    single, large = worth_by_size(likely, sizes)
    found = worth_of_places(single, large, sizes)
    # A machine that is nearly empty may soon be empty: a part of that worth, by the cube.
    for at, size in enumerate(sizes[1:], 1):
        parts = np.arange(size) / size
        partly = size * (single[:, np.newaxis] * parts)
        partly += size * (large[:, at] - single)[:, np.newaxis] * (parts * parts * parts)
        partly[cards < size] = 0
        found[:, :size] = np.maximum(found[:, :size], partly)
    return np.rint(found).astype(np.int64)


def prices_for(worth: Ints, single: Ints, cards: int, milli: int) -> PriceTable:
    """The price of an ask for so many cards, `milli` of all of them."""
    left = np.maximum(np.arange(MOST_CARDS + 1) - cards, 0)
    whole = worth - worth[:, left]
    part = np.broadcast_to((milli * single // WHOLE)[:, np.newaxis], whole.shape)
    # What is left of the cards that it takes can still be used in parts.
    rest = (cards * single)[:, np.newaxis] - part
    both = np.stack([part, whole - rest], axis=2)
    table = np.zeros(_USES, dtype=np.int64)
    table[1 : 1 + both.size] = both.ravel() * BULKS
    return price_table(table)


def _prices_by(
    library: Library,
    worth: Ints,
    single: Ints,
    addresses: tuple[int, int],
    cards: int,
    milli: int,
) -> PriceTable:
    """As `prices_for`. `worth` and `single` are here so that they live as long as this."""
    table = array("q", _NO_PRICES)  # says its address at once, where NumPy takes a while
    address, _ = table.buffer_info()
    library.table(*addresses, len(worth), cards, milli, address)
    return PriceTable(np.frombuffer(table, dtype=np.int64), address)
