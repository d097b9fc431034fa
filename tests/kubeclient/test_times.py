"""Times of any year are read and written: whoever writes an object chooses them."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.times import EPOCH, FIRST_S, LAST_S, duration, moment_of, seconds_of, stamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2020-01-02T03:04:05.250000Z", 1577934245.25),
        ("0000-01-01T00:00:00Z", FIRST_S),
        ("0000-02-29T12:00:00Z", FIRST_S + (31 + 28) * 86400 + 12 * 3600),
        ("0001-01-01T00:00:00Z", -62135596800),
        ("9999-12-31T23:59:59Z", LAST_S),
        ("9999-12-31T23:59:59-01:00", LAST_S + 3600),
    ],
)
def test_a_time_of_any_year_is_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "0000-", "2020-01-01T00:00:00", "0000-13-01"])
def test_what_is_no_time_is_none_and_as_a_moment_the_epoch(text: str) -> None:
    assert seconds_of(text) is None
    assert moment_of(text) == EPOCH


@given(st.integers(FIRST_S, LAST_S))
def test_what_is_written_is_read_again(second: int) -> None:
    text = stamp(second)
    assert len(text) == len("2006-01-02T15:04:05Z")
    assert seconds_of(text) == second


@given(st.floats(allow_nan=False))
def test_a_time_beyond_all_years_is_written_as_the_first_or_the_last_second(seconds: float) -> None:
    assert FIRST_S <= (seconds_of(stamp(seconds)) or 0) <= LAST_S


@given(st.integers(FIRST_S, LAST_S))
def test_a_hundred_years_can_be_added_to_every_moment_and_taken_from_it(second: int) -> None:
    century = datetime.timedelta(days=36525)
    moment = moment_of(stamp(second))
    assert moment + century > moment > moment - century


@given(st.integers(FIRST_S, LAST_S), st.one_of(st.integers(), st.floats(allow_nan=False)))
def test_every_duration_can_be_added_to_every_moment_and_taken_from_it(
    second: int, seconds: float
) -> None:
    moment = moment_of(stamp(second))
    assert (moment + duration(seconds)) - moment == moment - (moment - duration(seconds))
