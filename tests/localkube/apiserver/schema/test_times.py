import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.schema.fast import _TIMES
from localkube.apiserver.schema.times import (
    MICRO_LAYOUT,
    TIME_LAYOUT,
    BadTime,
    stored_time,
)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T3:04:05Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T01:00:00.999Z", "2020-01-02T01:00:00Z"),
        ("2020-01-02T01:00:00,5Z", "2020-01-02T01:00:00Z"),
        ("2020-01-02T01:00:00+02:00", "2020-01-01T23:00:00Z"),
        ("2020-12-31T23:30:00-00:45", "2021-01-01T00:15:00Z"),
    ],
)
def test_a_time_is_stored_in_utc_to_the_second(given: str, stored: str) -> None:
    assert stored_time(given, TIME_LAYOUT) == stored


def test_a_micro_time_keeps_its_six_digits() -> None:
    given = "2020-01-02T01:00:00.123450+02:00"
    assert stored_time(given, MICRO_LAYOUT) == "2020-01-01T23:00:00.123450Z"


# Texts of a real kube-apiserver 1.35.8.
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", 'parsing time "" as "LAYOUT": cannot parse "" as "2006"'),
        ("2020", 'parsing time "2020" as "LAYOUT": cannot parse "" as "-"'),
        ('a"b', r'parsing time "a\"b" as "LAYOUT": cannot parse "a\"b" as "2006"'),
        (
            "2020-1-02T00:00:00Z",
            'parsing time "2020-1-02T00:00:00Z" as "LAYOUT": cannot parse "1-02T00:00:00Z" as "01"',
        ),
        (
            "2020-12-01t00:00:00z",
            'parsing time "2020-12-01t00:00:00z" as "LAYOUT": cannot parse "t00:00:00z" as "T"',
        ),
        (
            "2020-01-02T01:00:00.",
            'parsing time "2020-01-02T01:00:00." as "LAYOUT": cannot parse "." as "Z07:00"',
        ),
        ("2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'),
        ("2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
        ("2020-12-01T25:00:00Z", 'parsing time "2020-12-01T25:00:00Z": hour out of range'),
        ("2020-12-01T00:00:60Z", 'parsing time "2020-12-01T00:00:60Z": second out of range'),
        ("2020-12-01T00:00:00Zx", 'parsing time "2020-12-01T00:00:00Zx": extra text: "x"'),
        (
            "2020-01-02T01:00:00+25:00",
            'parsing time "2020-01-02T01:00:00+25:00": time zone offset hour out of range',
        ),
    ],
)
def test_a_bad_time_is_refused_in_gos_words(given: str, why: str) -> None:
    with pytest.raises(BadTime) as refused:
        stored_time(given, TIME_LAYOUT)
    assert str(refused.value) == why.replace("LAYOUT", TIME_LAYOUT)


def test_a_micro_time_needs_exactly_six_digits() -> None:
    with pytest.raises(BadTime, match=r'cannot parse "Z" as "\.000000"'):
        stored_time("2020-01-02T01:00:00Z", MICRO_LAYOUT)
    with pytest.raises(BadTime, match=r'cannot parse "789Z" as "Z07:00"'):
        stored_time("2020-01-02T01:00:00.123456789Z", MICRO_LAYOUT)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ("0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
        ("0001-01-01T00:00:00+10:00", "0000-12-31T14:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_times_of_the_years_0_to_9999_are_taken_as_go_takes_them(given: str, stored: str) -> None:
    assert stored_time(given, TIME_LAYOUT) == stored


@pytest.mark.parametrize("given", ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-01:00"])
def test_a_time_beyond_the_years_0_to_9999_is_refused(given: str) -> None:
    with pytest.raises(BadTime, match="year out of range"):
        stored_time(given, TIME_LAYOUT)


@given(st.from_regex(_TIMES["Time"].__metadata__[0].pattern, fullmatch=True))
def test_both_ways_to_check_a_time_agree(text: str) -> None:
    """The fast check lets through only what the slow one would store unchanged."""
    assert stored_time(text, TIME_LAYOUT) == text
