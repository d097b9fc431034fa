"""Times as Kubernetes writes them: RFC 3339, in UTC, of the years 0 to 9999.

Anybody who may write an object chooses its times, so nothing here raises for a time of any year.
Python's datetime begins with the year 1, and a date at either end of its range cannot be added to.
So times are read as seconds, or as moments that leave room on both sides.
"""

import datetime
from functools import lru_cache

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FIRST_S, LAST_S = -62_167_219_200, 253_402_300_799  # 0000-01-01T00:00:00Z, 9999-12-31T23:59:59Z
# Far outside of what any cluster means by a time, and far inside of what datetime can count.
_EARLIEST_S, _LATEST_S = -30_610_224_000, 221_845_392_000  # the years 1000 and 9000
_LONGEST_S = 500 * 365 * 86_400  # from any moment that `moment_of` gives, still inside of it
# The calendar repeats itself after 400 years.
_CYCLE_YEARS, _CYCLE_S = 400, 146_097 * 86_400


@lru_cache(maxsize=4096)
def seconds_of(text: str) -> float | None:
    """Since 1970; None if the text is no time."""
    is_year_0 = text.startswith("0000-")
    try:
        moment = datetime.datetime.fromisoformat(
            f"{_CYCLE_YEARS:04}-{text[5:]}" if is_year_0 else text
        )
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return (moment - EPOCH).total_seconds() - (_CYCLE_S if is_year_0 else 0)


def moment_of(text: str | None) -> datetime.datetime:
    """The epoch if there is no text, or it is no time. A moment before the year 1000 or after 9000
    becomes the nearest one in between, so that callers may add and subtract years."""
    seconds = seconds_of(text) if text else None
    if seconds is None:
        return EPOCH
    return EPOCH + datetime.timedelta(seconds=min(max(seconds, _EARLIEST_S), _LATEST_S))


def duration(seconds: float) -> datetime.timedelta:
    """At most 500 years: users write durations of 64 bits."""
    return datetime.timedelta(seconds=min(max(seconds, -_LONGEST_S), _LONGEST_S))


def stamp(seconds: float) -> str:
    """As metav1.Time writes it. Beyond the years 0 to 9999: the first or the last second."""
    return _stamp(int(min(max(seconds, FIRST_S), LAST_S)))


@lru_cache(maxsize=1024)
def _stamp(second: int) -> str:
    # Not strftime: on Linux its %Y writes the year 33 as "33".
    if second >= FIRST_S + _CYCLE_S:
        return f"{(EPOCH + datetime.timedelta(seconds=second)).replace(tzinfo=None).isoformat()}Z"
    later = EPOCH + datetime.timedelta(seconds=second + _CYCLE_S)
    return f"{later.year - _CYCLE_YEARS:04}{later.replace(tzinfo=None).isoformat()[4:]}Z"
