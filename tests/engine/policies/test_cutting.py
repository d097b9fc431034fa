from hypothesis import given
from hypothesis import strategies as st

from gpupool.engine.policies.cutting import usable_milli


def test_two_halves_fill_a_card_and_nothing_fits_beside_eight_tenths() -> None:
    usable = usable_milli({10: 10, 8: 10, 5: 10}, 10)
    assert usable[10] == 1000
    assert usable[8] == 800  # all of it: a pod of 0.8 needs no more
    assert usable[5] == usable[6] == usable[7] == 500
    assert usable[2] == usable[4] == 0


def test_without_demand_everything_is_usable() -> None:
    assert usable_milli({}, 4).tolist() == [0, 250, 500, 750, 1000]


@given(st.dictionaries(st.integers(1, 12), st.integers(1, 50), min_size=1), st.integers(1, 12))
def test_more_room_is_never_worth_less_and_never_more_than_there_is(
    demand: dict[int, int], total: int
) -> None:
    usable = usable_milli(demand, total).tolist()
    assert len(usable) == total + 1
    assert usable == sorted(usable)
    assert all(0 <= worth <= 1000 for worth in usable)
    if any(size <= total for size in demand):
        assert usable[total] == 1000


def test_cards_with_many_units_are_rounded_to_steps() -> None:
    usable = usable_milli({81920: 5, 40960: 3, 333: 1}, 81920)
    assert len(usable) == 81921
    assert usable[81920] == 1000
