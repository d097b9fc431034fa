"""Sets of indexes behave as sets of numbers do, and cost no more than their spans."""

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.controllers import job_pods
from localkube.controllers.job_indexes import indexes_of, parse_indexes, text_of_indexes

NUMBERS = st.frozensets(st.integers(0, 15))


@pytest.mark.parametrize(
    ("indexes", "text"),
    [([], ""), ([0], "0"), ([0, 1], "0,1"), ([0, 1, 2, 5, 7, 8, 9], "0-2,5,7-9")],
)
def test_indexes_are_written_as_spans(indexes: list[int], text: str) -> None:
    assert text_of_indexes(indexes_of(indexes)) == text
    assert parse_indexes(text, 10) == indexes_of(indexes)


def test_indexes_beyond_the_completions_are_dropped() -> None:
    assert parse_indexes("0-4,7,x,9-,3-1,١", 4) == indexes_of(range(4))


@given(NUMBERS, NUMBERS)
def test_they_behave_as_sets_of_numbers(some: frozenset[int], others: frozenset[int]) -> None:
    ours, theirs = indexes_of(some), indexes_of(others)
    assert parse_indexes(text_of_indexes(ours), 16) == ours
    assert ours | theirs == indexes_of(some | others)
    assert ours & theirs == indexes_of(some & others)
    assert (len(ours), bool(ours)) == (len(some), bool(some))
    assert {number for number in range(-1, 17) if number in ours} == some
    assert list(ours.missing(16)) == sorted(set(range(16)) - some)


def test_two_thousand_million_indexes_cost_no_more_than_two() -> None:
    most = 2**31 - 1
    tracemalloc.start()
    try:
        done = parse_indexes(f"0-{most - 2}", most)
        assert len(done | indexes_of([most - 1])) == most
        assert list(itertools.islice(done.missing(most), 5)) == [most - 1]
        policy = {"rules": [{"succeededIndexes": f"1-{most - 1}", "succeededCount": most - 2}]}
        assert job_pods.success_by(policy, done, most) == "Matched rules at index 0"
        assert tracemalloc.get_traced_memory()[1] < 1024**2
    finally:
        tracemalloc.stop()
