"""Cards that are linked go together: exactly on ordinary nodes, card by card on very large ones."""

import pytest

from gpupool.core.gpu import Card
from gpupool.engine import links
from gpupool.engine.links import nearest_cards


def ring_of_pairs(count: int) -> tuple[Card, ...]:
    """Cards 0 and 1 are linked by four NVLinks, 2 and 3 likewise, and so on."""
    return tuple(
        Card(at, f"g-{at}", "V100", 16130, links=((at ^ 1, 4),), numa=at // 4)
        for at in range(count)
    )


def test_a_pair_that_is_linked_is_taken_together() -> None:
    assert nearest_cards(ring_of_pairs(8), (1, 2, 3, 5), 2) == (2, 3)


def test_of_very_many_sets_a_good_one_is_grown_card_by_card(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cards, free = ring_of_pairs(8), (1, 2, 3, 5, 6, 7)
    exact = nearest_cards(cards, free, 4)
    links._nearest.cache_clear()
    monkeypatch.setattr(links, "_MOST_SETS", 1)
    grown = nearest_cards(cards, free, 4)
    links._nearest.cache_clear()
    assert set(exact) == {2, 3, 6, 7}
    # Growing begins with cards 1 and 5: their partners are taken, so they leave no pair apart.
    assert grown == (1, 2, 3, 5)


def test_a_node_with_many_cards_is_still_decided() -> None:
    taken = nearest_cards(ring_of_pairs(32), tuple(range(32)), 16)
    assert len(set(taken)) == 16
    assert all(row ^ 1 in taken for row in taken)
