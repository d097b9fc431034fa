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
    assert set(grown) == set(exact) == {2, 3, 6, 7}


def groups_of(size: int, count: int) -> tuple[Card, ...]:
    """Every card is linked with all others of its group."""
    return tuple(
        Card(
            at,
            f"g-{at}",
            "V100",
            16130,
            links=tuple((o, 2) for o in range(count) if o // size == at // size and o != at),
            numa=at // 8,
        )
        for at in range(count)
    )


def inside(cards: tuple[Card, ...], rows: tuple[int, ...]) -> int:
    return sum(count for row in rows for other, count in cards[row].links if other in rows)


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("wanted", [2, 4, 6, 8])
def test_sets_that_are_grown_have_as_many_links_as_the_best(
    size: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = groups_of(size, 16)
    for free in ((*range(0, 16, 3), 1, 2, 13, 14), tuple(range(1, 15)), (0, 1, 4, 6, 7, 9, 10, 11)):
        free = tuple(sorted(set(free)))
        with monkeypatch.context() as patched:
            exact = nearest_cards(cards, free, wanted)
            patched.setattr(links, "_MOST_SETS", 0)
            links._nearest.cache_clear()
            grown = nearest_cards(cards, free, wanted)
        links._nearest.cache_clear()
        assert inside(cards, grown) == inside(cards, exact)


def test_a_node_with_many_cards_is_still_decided() -> None:
    taken = nearest_cards(ring_of_pairs(32), tuple(range(32)), 16)
    assert len(set(taken)) == 16
    assert all(row ^ 1 in taken for row in taken)
