"""metav1.Time and MicroTime: the form in which a time is stored, and what is wrong with others."""

import datetime
import re

import orjson

TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
# What Go's time.Parse looks for, one after the other.
_HEAD = (
    ("2006", "[0-9]{4}"),
    ("-", "-"),
    ("01", "[0-9]{2}"),
    ("-", "-"),
    ("02", "[0-9]{2}"),
    ("T", "T"),
    ("15", "[0-9]{1,2}"),
    (":", ":"),
    ("04", "[0-9]{2}"),
    (":", ":"),
    ("05", "[0-9]{2}"),
)
_ZONE = ("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}")
_ELEMENTS = {
    TIME_LAYOUT: (*_HEAD, ("", "(?:[.,][0-9]+)?"), _ZONE),
    MICRO_LAYOUT: (*_HEAD, (".000000", r"\.[0-9]{6}"), _ZONE),
}
_PARTS = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


class BadTime(ValueError):
    """No such time; says why as Go does."""


def stored_time(text: str, layout: str) -> str:
    """In UTC, to the second (TIME_LAYOUT) or microsecond (MICRO_LAYOUT). Raises BadTime.

    Go knows the year 0. Beyond the years 0 to 9999 its own text of a time cannot be parsed again:
    we refuse what would become such a time in UTC, where a real server stores it.
    """
    _check_form(text, layout)
    found = _PARTS.fullmatch(text)
    assert found is not None, "the form was checked"
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    _check_ranges(text, month, hour, minute, second)
    offset = _offset(text, found)
    try:
        # datetime has no year 0; the calendar repeats itself after 400 years.
        moment = datetime.datetime(year % 400 + 400, month, day, hour, minute, second) - offset
    except ValueError:
        raise BadTime(f"parsing time {_quoted(text)}: day out of range") from None
    year += moment.year - (year % 400 + 400)
    if not 0 <= year <= 9999:
        raise BadTime(f"parsing time {_quoted(text)}: year out of range")
    micros = f".{(found[7] or '')[:6]:0<6}" if layout == MICRO_LAYOUT else ""
    return f"{year:04}{moment.isoformat()[4:]}{micros}Z"


def _check_form(text: str, layout: str) -> None:
    place = 0
    for element, pattern in _ELEMENTS[layout]:
        found = re.compile(pattern, re.ASCII).match(text, place)
        if found is None:
            raise BadTime(
                f'parsing time {_quoted(text)} as "{layout}": '
                f'cannot parse {_quoted(text[place:])} as "{element}"'
            )
        place = found.end()
    if place < len(text):
        raise BadTime(f"parsing time {_quoted(text)}: extra text: {_quoted(text[place:])}")


def _check_ranges(text: str, month: int, hour: int, minute: int, second: int) -> None:
    for name, good in (
        ("month", 1 <= month <= 12),
        ("hour", hour < 24),
        ("minute", minute < 60),
        ("second", second < 60),
    ):
        if not good:
            raise BadTime(f"parsing time {_quoted(text)}: {name} out of range")


def _offset(text: str, found: re.Match[str]) -> datetime.timedelta:
    if found[8] is None:
        return datetime.timedelta()
    hours, minutes = int(found[9]), int(found[10])
    for name, good in (("hour", hours <= 24), ("minute", minutes < 60)):
        if not good:
            raise BadTime(f"parsing time {_quoted(text)}: time zone offset {name} out of range")
    sign = -1 if found[8] == "-" else 1
    return sign * datetime.timedelta(hours=hours, minutes=minutes)


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
