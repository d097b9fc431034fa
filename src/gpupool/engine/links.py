"""nearest_cards: of the free cards of a node, those that are best linked with one another.

First the most NVLinks inside the set; then the fewest links to the free cards that remain, so that
those stay well linked too; then the fewest NUMA nodes; then the lowest indexes.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import TypeAlias

from gpupool.core.gpu import Card

_MOST_GROWN = 8  # sets that are built card by card
_MOST_SETS = 5_000  # with more possible sets, sets are built card by card

Links: TypeAlias = tuple[tuple[tuple[int, int], ...], ...]  # by row: (row, links) of each neighbour


def nearest_cards(cards: Iterable[Card], free: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """Rows; there are at least `wanted` free ones."""
    listed = tuple(cards)
    if len(free) == wanted or not any(card.links for card in listed):
        return free[:wanted]
    rows = {card.index: row for row, card in enumerate(listed)}
    links = tuple(
        tuple((rows[index], count) for index, count in card.links if index in rows)
        for card in listed
    )
    return _nearest(links, tuple(card.numa for card in listed), free, wanted)


@lru_cache(maxsize=4096)
def _nearest(
    links: Links, numa: tuple[int, ...], free: tuple[int, ...], wanted: int
) -> tuple[int, ...]:
    def badness(rows: tuple[int, ...]) -> tuple[int, int, int, tuple[int, ...]]:
        # A link inside the set is counted from both of its ends.
        inside = _between(links, rows, rows) // 2
        cut = _between(links, rows, tuple(row for row in free if row not in rows))
        return -inside, cut, len({numa[row] for row in rows}), rows

    if comb(len(free), wanted) <= _MOST_SETS:
        return min(combinations(free, wanted), key=badness)
    # A set with a card that has few links is also reached from one that has many.
    firsts = sorted(free, key=lambda row: (-_between(links, (row,), free), row))[:_MOST_GROWN]
    return min((_grown(links, numa, free, wanted, first) for first in firsts), key=badness)


def _grown(
    links: Links, numa: tuple[int, ...], free: tuple[int, ...], wanted: int, first: int
) -> tuple[int, ...]:
    """A good set with the card `first`, built card by card.

    Of the cards with the most links to the set, the one with the most links to other free cards is
    added, because these may follow it; the last card is the one with the fewest, because they stay.
    """
    grown, left, near = {first}, set(free) - {first}, {numa[first]}

    def badness(row: int) -> tuple[int, int, bool, int]:
        inside = sum(count for other, count in links[row] if other in grown)
        outside = sum(count for other, count in links[row] if other in left)
        is_last = len(grown) + 1 == wanted
        return -inside, outside if is_last else -outside, numa[row] not in near, row

    while len(grown) < wanted:
        row = min(left, key=badness)
        left.remove(row)
        grown.add(row)
        near.add(numa[row])
    return tuple(sorted(grown))


def _between(links: Links, some: tuple[int, ...], others: tuple[int, ...]) -> int:
    return sum(count for row in some for other, count in links[row] if other in others)
