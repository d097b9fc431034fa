"""When CronJobs are due."""

import contextlib
import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube import cron
from localkube.controllers.cron_job_times import (
    Due,
    Missed,
    NeverDue,
    due,
    next_time,
    seconds_to_next,
)

UTC = datetime.UTC


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text + "+00:00")


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2026-11-15T12:00:00", "2026-11-15T12:01:00"),
        ("* * * * *", "2026-11-15T12:00:59", "2026-11-15T12:01:00"),
        ("*/15 * * * *", "2026-11-15T12:45:00", "2026-11-15T13:00:00"),
        ("30 8 * * mon-fri", "2026-11-13T09:00:00", "2026-11-16T08:30:00"),
        ("0 0 31 * *", "2026-11-15T12:00:00", "2026-12-31T00:00:00"),
        ("0 0 29 2 *", "2026-11-15T12:00:00", "2028-02-29T00:00:00"),
        ("0 0 13 * 5", "2026-11-13T00:00:00", "2026-11-20T00:00:00"),  # the 13th or a Friday
        ("@daily", "2026-12-31T12:00:00", "2027-01-01T00:00:00"),
        ("@every 90s", "2026-11-15T12:00:00", "2026-11-15T12:01:30"),
        ("0 12 * jan *", "2026-11-15T12:00:00", "2027-01-01T12:00:00"),
    ],
)
def test_the_next_time_is_the_first_that_fits(schedule: str, after: str, expected: str) -> None:
    assert next_time(cron.parse(schedule), at(after), UTC) == at(expected)


@pytest.mark.parametrize(
    ("zone", "schedule", "after", "expected"),
    [
        ("Asia/Shanghai", "0 8 * * *", "2026-11-15T12:00:00", "2026-11-16T00:00:00"),
        # 02:30 does not exist on this morning in New York,
        ("America/New_York", "30 2 * * *", "2026-03-08T05:00:00", "2026-03-09T06:30:00"),
        # and 01:30 comes twice on this one.
        ("America/New_York", "30 1 * * *", "2026-11-01T04:00:00", "2026-11-01T05:30:00"),
        ("America/New_York", "30 1 * * *", "2026-11-01T05:30:00", "2026-11-01T06:30:00"),
        ("Asia/Kathmandu", "0 * * * *", "2026-11-15T12:00:00", "2026-11-15T12:15:00"),
    ],
)
def test_a_schedule_follows_the_local_time_of_its_zone(
    zone: str, schedule: str, after: str, expected: str
) -> None:
    assert next_time(cron.parse(schedule), at(after), ZoneInfo(zone)) == at(expected)


def test_the_search_for_a_time_that_never_comes_ends() -> None:
    assert next_time(cron.parse("0 0 31 2 *"), at("2026-11-15T12:00:00"), UTC) is None


fields = st.sampled_from(["*", "0", "5", "1-3", "*/2"])


@given(st.tuples(fields, fields, st.sampled_from(["*", "1", "15"]), st.just("*"), fields))
def test_a_next_time_fits_and_there_is_none_before_it(parts: tuple[str, ...]) -> None:
    schedule = cron.parse(" ".join(parts))
    after = at("2026-11-15T12:34:56")
    found = next_time(schedule, after, UTC)
    assert found is not None
    assert found.minute in schedule.minutes
    assert found.hour in schedule.hours
    earlier = found - datetime.timedelta(minutes=1)
    while earlier > max(after, found - datetime.timedelta(hours=3)):
        fits = earlier.minute in schedule.minutes and earlier.hour in schedule.hours
        by_date = earlier.day in schedule.days
        by_weekday = earlier.isoweekday() % 7 in schedule.weekdays
        day = by_date and by_weekday
        if not (schedule.any_day or schedule.any_weekday):
            day = by_date or by_weekday
        assert not (fits and day)
        earlier -= datetime.timedelta(minutes=1)


def cron_job(created: str, last: str = "", **spec: int) -> Obj:
    status = {"lastScheduleTime": f"{last}Z"} if last else {}
    return {"metadata": {"creationTimestamp": f"{created}Z"}, "spec": spec, "status": status}


HOURLY = cron.parse("0 * * * *")


@pytest.mark.parametrize(
    ("job", "now", "expected"),
    [
        (cron_job("2026-11-15T10:30:00"), "2026-11-15T10:59:00", (None, Missed.NONE)),
        (cron_job("2026-11-15T10:30:00"), "2026-11-15T11:00:00", ("11", Missed.NONE)),
        (cron_job("2026-11-15T10:30:00"), "2026-11-15T13:30:00", ("13", Missed.FEW)),
        (
            cron_job("2026-11-01T10:30:00", "2026-11-15T12:00:00"),
            "2026-11-15T12:30:00",
            (None, Missed.NONE),
        ),
        (cron_job("2026-11-01T10:30:00"), "2026-11-15T13:30:00", ("13", Missed.MANY)),
        (
            cron_job("2026-11-01T10:30:00", startingDeadlineSeconds=600),
            "2026-11-15T13:30:00",
            (None, Missed.NONE),
        ),
        (
            cron_job("2026-11-01T10:30:00", startingDeadlineSeconds=7200),
            "2026-11-15T13:30:00",
            ("13", Missed.FEW),
        ),
    ],
)
def test_the_last_of_the_passed_times_counts(
    job: Obj, now: str, expected: tuple[str | None, Missed]
) -> None:
    hour, missed = expected
    found = due(job, HOURLY, UTC, at(now), True)
    latest = at(f"2026-11-15T{hour}:00:00") if hour else None
    assert (found.latest, found.missed) == (latest, missed)
    assert isinstance(found, Due)


def test_irregular_schedules_find_their_last_time_too() -> None:
    schedule = cron.parse("30 6-16/4 * * 1-5")
    found = due(cron_job("2026-11-09T10:00:00"), schedule, UTC, at("2026-11-15T13:00:00"), True)
    assert found.latest == at("2026-11-13T14:30:00")  # Friday's last


def test_a_schedule_without_times_is_never_due() -> None:
    with pytest.raises(NeverDue):
        due(
            cron_job("2026-11-15T10:30:00"),
            cron.parse("0 0 31 2 *"),
            UTC,
            at("2026-11-16T00:00:00"),
            True,
        )


def test_the_controller_wakes_just_after_the_next_time() -> None:
    job = cron_job("2026-11-15T10:30:00")
    found = seconds_to_next(job, HOURLY, UTC, at("2026-11-15T10:59:30"))
    assert found == pytest.approx(30.1)
    assert seconds_to_next(job, cron.parse("0 0 31 2 *"), UTC, at("2026-11-15T10:59:30")) is None


FIELDS = st.tuples(
    st.sampled_from(["*", "0", "*/17", "5,58", ","]),
    st.sampled_from(["*", "3", "*/5", "23"]),
    st.sampled_from(["*", "1", "31"]),
    st.sampled_from(["*", "1", "2-11", "11"]),
    st.sampled_from(["*", "1-5"]),
)


@given(FIELDS, st.integers(0, 40_000), st.sampled_from(["UTC", "America/New_York"]))
def test_the_last_time_is_the_one_that_a_search_through_all_of_them_finds(
    fields: tuple[str, ...], minutes: int, name: str
) -> None:
    schedule, zone = cron.parse(" ".join(fields)), ZoneInfo(name)
    now = at("2026-11-15T10:30:20")
    created = now - datetime.timedelta(minutes=minutes)
    time = latest = next_time(schedule, created, zone)
    while time is not None and time <= now:
        latest, time = time, next_time(schedule, time, zone)
    job = cron_job(created.isoformat().removesuffix("+00:00"))
    if latest is None:
        with pytest.raises(NeverDue):
            due(job, schedule, zone, now, True)
    else:
        assert due(job, schedule, zone, now, True).latest == (latest if latest <= now else None)


@pytest.mark.parametrize("last", ["0001-01-01T00:00:00", "9999-12-31T23:59:59", ""])
@pytest.mark.parametrize("schedule", ["* * * 1 *", "@every 1s", "@every 2562047h", ", * * * *"])
def test_every_time_and_deadline_that_the_api_accepts_can_be_calculated_with(
    last: str, schedule: str
) -> None:
    for deadline_s in (0, 2**31 - 1, 2**63 - 1):
        job = cron_job("2026-11-01T10:30:00", last, startingDeadlineSeconds=deadline_s)
        now = at("2026-11-15T10:30:00")
        with contextlib.suppress(NeverDue):
            due(job, cron.parse(schedule), UTC, now, True)
        seconds_to_next(job, cron.parse(schedule), UTC, now)
