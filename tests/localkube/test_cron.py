"""Cron schedules are read, and refused, as Kubernetes does it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube import cron
from localkube.cron import CronError


def test_a_star_is_every_value() -> None:
    schedule = cron.parse("* * * * *")
    assert schedule.minutes == frozenset(range(60))
    assert schedule.months == frozenset(range(1, 13))
    assert schedule.any_day
    assert schedule.any_weekday


def test_lists_ranges_steps_and_names() -> None:
    schedule = cron.parse("0,30 8-18/2 1-7 jan,Mar mon-FRI")
    assert schedule.minutes == {0, 30}
    assert schedule.hours == {8, 10, 12, 14, 16, 18}
    assert schedule.days == set(range(1, 8))
    assert schedule.months == {1, 3}
    assert schedule.weekdays == {1, 2, 3, 4, 5}
    assert not schedule.any_day


def test_a_step_from_a_number_goes_to_the_end() -> None:
    assert cron.parse("50/5 * * * *").minutes == {50, 55}


def test_a_descriptor_stands_for_five_fields() -> None:
    assert cron.parse("@daily") == cron.parse("0 0 * * *")
    assert cron.parse("@every 1h30m").every_s == 5400


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty spec string"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        (
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
        ),
        ("@never", "unrecognized descriptor: @never"),
        (
            "@every x",
            'failed to parse duration @every x: time: invalid duration "x"',
        ),
        (
            "@every 5",
            'failed to parse duration @every 5: time: missing unit in duration "5"',
        ),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(CronError) as refused:
        cron.parse(text)
    assert str(refused.value) == why


parts = st.text("0159*/-,?janmo", min_size=1, max_size=6)


@given(st.lists(parts, min_size=1, max_size=6).map(" ".join))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        schedule = cron.parse(text)
    except CronError:
        return
    assert schedule.minutes <= set(range(60))
    assert schedule.weekdays <= set(range(7))
