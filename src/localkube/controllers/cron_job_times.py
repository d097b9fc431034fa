"""When a CronJob is due. Pure.

A schedule follows the local time of its time zone. An hour that is skipped in spring has no
scheduled times, and an hour that occurs twice in autumn has each of them twice.
"""

import datetime
from dataclasses import dataclass
from enum import Enum
from zoneinfo import ZoneInfo

from kubeclient.objects import Obj
from kubeclient.times import duration
from localkube.controllers.pods import parse_time
from localkube.cron import Schedule

_MINUTE = datetime.timedelta(minutes=1)
_MOST_YEARS = 5
_MANY = 100
_SKEW_S = 0.1  # wake up a little after the time, never before it


def next_time(
    schedule: Schedule, after: datetime.datetime, zone: datetime.tzinfo
) -> datetime.datetime | None:
    """The first time later than `after`. None: there is none within five years."""
    if schedule.every_s:
        whole = after.replace(microsecond=0)
        return whole + duration(schedule.every_s)
    if not (schedule.minutes and schedule.hours):
        return None  # "," is a valid field that names no time
    time = after.astimezone(datetime.UTC).replace(second=0, microsecond=0) + _MINUTE
    last_year = after.astimezone(zone).year + _MOST_YEARS
    while True:
        wall = time.astimezone(zone)
        if wall.year > last_year:
            return None
        if wall.month not in schedule.months:
            first = wall.date().replace(day=1) + datetime.timedelta(days=32)
            time = _midnight(first.replace(day=1), zone)
        elif not _is_day(schedule, wall):
            time = _midnight(wall.date() + datetime.timedelta(days=1), zone)
        elif wall.hour not in schedule.hours:
            time += (60 - wall.minute) * _MINUTE
        elif wall.minute not in schedule.minutes:
            time += _MINUTE
        else:
            return time


def _midnight(day: datetime.date, zone: datetime.tzinfo) -> datetime.datetime:
    start = datetime.datetime.combine(day, datetime.time(), zone)
    return start.astimezone(datetime.UTC)


def _is_day(schedule: Schedule, wall: datetime.datetime) -> bool:
    by_date = wall.day in schedule.days
    by_weekday = wall.isoweekday() % 7 in schedule.weekdays
    if schedule.any_day or schedule.any_weekday:
        return by_date and by_weekday
    return by_date or by_weekday


class Missed(Enum):
    NONE, FEW, MANY = range(3)


class NeverDue(ValueError):
    """The schedule is valid but never occurs: the 31st of February."""


@dataclass(frozen=True, slots=True)
class Due:
    since: datetime.datetime  # times after this one count
    latest: datetime.datetime | None  # the last one that has passed
    missed: Missed


def due(
    cron_job: Obj, schedule: Schedule, zone: datetime.tzinfo, now: datetime.datetime, deadline: bool
) -> Due:
    """`deadline`: leave out times older than startingDeadlineSeconds. Raises NeverDue."""
    since = _since(cron_job, now, deadline)
    first = next_time(schedule, since, zone)
    if first is not None and now < first:
        return Due(since, None, Missed.NONE)
    second = next_time(schedule, first, zone) if first is not None else None
    if first is None or second is None:
        raise NeverDue("time difference between two schedules is less than 1 second")
    if now < second:
        return Due(since, first, Missed.NONE)
    # The number of missed times is estimated from the interval of the first two: going through
    # years of minutes one by one would take too long.
    count = (now - first) // (second - first) + 1
    latest = _latest(schedule, zone, first, second - first, now)
    return Due(since, latest, Missed.MANY if count > _MANY else Missed.FEW)


def _latest(
    schedule: Schedule,
    zone: datetime.tzinfo,
    first: datetime.datetime,
    step: datetime.timedelta,
    now: datetime.datetime,
) -> datetime.datetime:
    """The last scheduled time until now; `first` is one, and `step` the interval to the second."""
    if schedule.every_s:
        return first + (now - first) // step * step
    # From `early` on there is a scheduled time until now, from `late` on there is none. Halving the
    # time between finds the last one in a few steps, however many there were.
    latest, early, late = first, first, now
    while late - early > _MINUTE:
        middle = early + (late - early) / 2
        time = next_time(schedule, middle, zone)
        if time is not None and time <= now:
            latest = early = time
        else:
            late = middle
    time = next_time(schedule, early, zone)
    return time if time is not None and time <= now else latest


def _since(cron_job: Obj, now: datetime.datetime, deadline: bool) -> datetime.datetime:
    last = cron_job.get("status", {}).get("lastScheduleTime")
    since = parse_time(last or cron_job["metadata"]["creationTimestamp"])
    limit_s = cron_job["spec"].get("startingDeadlineSeconds")
    if deadline and limit_s is not None:
        since = max(since, now - duration(limit_s))
    return since


def seconds_to_next(
    cron_job: Obj, schedule: Schedule, zone: datetime.tzinfo, now: datetime.datetime
) -> float | None:
    """None: the CronJob will never be due."""
    try:
        found = due(cron_job, schedule, zone, now, False)
    except NeverDue:
        begin = now
    else:
        begin = found.latest or (found.since if found.missed is Missed.NONE else now)
    time = next_time(schedule, begin, zone)
    return None if time is None else max(0.0, (time - now).total_seconds()) + _SKEW_S


def zone_of(cron_job: Obj) -> datetime.tzinfo:
    """Raises ValueError or KeyError for a zone that is unknown."""
    name = cron_job["spec"].get("timeZone")
    return ZoneInfo(name) if name else datetime.UTC
