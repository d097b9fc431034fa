import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.times import seconds_of
from localkube.apiserver.tables.durations import human_duration, since

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (-2.5, "<invalid>"),
        (-1.9, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (5 * MINUTE + 55, "5m55s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (18 * HOUR + 30 * MINUTE, "18h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 45 * DAY, "3y45d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR, "8y"),
        (2026 * YEAR, "292y"),  # Go's longest duration
    ],
)
def test_durations_have_two_or_three_figures(duration_s: float, text: str) -> None:
    assert human_duration(duration_s) == text


def test_ages_of_unknown_and_of_wrong_times() -> None:
    assert since(None, 0) == "<unknown>"
    assert since("", 0) == "<unknown>"
    assert since("yesterday", 0) == "<invalid>"
    assert since("1970-01-01T00:00:00", 5) == "<invalid>"
    assert since("0000-01-01T00:00:00Z", 5) == "292y"
    assert since("9999-12-31T23:59:59Z", 5) == "<invalid>"
    assert since("1970-01-01T00:00:01Z", 5) == "4s"
    assert since("1970-01-01T00:00:01.250000Z", 5) == "3s"
    assert seconds_of("1970-01-01T01:00:00+01:00") == 0


@given(st.floats(min_value=0, max_value=2**63 // 10**9))
def test_a_duration_is_never_shown_longer_than_it_is(duration_s: float) -> None:
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    shown, number = 0, ""
    for character in human_duration(duration_s):
        if character in units:
            shown += int(number) * units[character]
            number = ""
        else:
            number += character
    assert shown <= duration_s < shown * 1.5 + 1
