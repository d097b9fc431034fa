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

_MOST_SETS = 5_000  # with more possible sets, the set is built card by card

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
    grown: tuple[int, ...] = ()
    while len(grown) < wanted:
        more = (tuple(sorted((*grown, row))) for row in free if row not in grown)
        grown = min(more, key=badness)
    return grown


def _between(links: Links, some: tuple[int, ...], others: tuple[int, ...]) -> int:
    return sum(count for row in some for other, count in links[row] if other in others)
