"""Rounding of foreign amounts: never less than was asked, on any card."""

from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from gpupool.admission.foreign.sizes import given_mib, units_for_mib, units_for_part
from gpupool.core.gpu import Card, limit_mib

cards = st.integers(1024, 200_000).map(lambda mib: Card(0, "GPU-0", "any", mib))


@given(st.integers(1, 200_000), st.lists(cards, min_size=1, max_size=4))
def test_no_card_that_can_serve_gives_less_than_was_asked(mib: int, sizes: list[Card]) -> None:
    units = units_for_mib(mib, sizes)
    serving = [card for card in sizes if units and card.units >= units]
    assert all(limit_mib(units, card) >= mib for card in serving)
    # A refusal is right: no number of units is enough on every card that has so many.
    most = max(card.units for card in sizes)
    assert serving or all(
        any(limit_mib(less, card) < mib for card in sizes if card.units >= less)
        for less in range(1, most + 1)
    )


@given(st.integers(1, 200_000), cards)
def test_one_size_of_cards_gives_less_than_a_unit_too_much(mib: int, card: Card) -> None:
    units = units_for_mib(mib, [card])
    assert (units == 0) == (mib > card.memory_mib)
    if units:
        assert given_mib(units, [card]) >= mib
        assert (units - 1) * card.unit_mib < mib


@given(st.integers(1, 200_000))
def test_without_a_known_card_a_unit_is_a_gib(mib: int) -> None:
    assert units_for_mib(mib, []) == ceil(mib / 1024)
    assert given_mib(units_for_mib(mib, []), []) >= mib


@given(st.integers(1, 100), cards)
def test_a_part_is_never_less_than_that_part(percent: int, card: Card) -> None:
    (units,) = units_for_part(Fraction(percent, 100), [card])
    assert units <= card.units
    assert Fraction(units, card.units) >= Fraction(percent, 100)
