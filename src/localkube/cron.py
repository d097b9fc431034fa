"""Cron schedules as Kubernetes reads them: five fields, or a descriptor such as @daily.

`parse` says in the words of Kubernetes what is wrong with a schedule. Days follow cron's rule: if
both day of month and day of week are restricted, either one is enough (see `Schedule.any_day`).
"""

import re
from dataclasses import dataclass
from typing import NoReturn

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_UNIT_NANOS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LARGEST = 2**63 - 1
_LONGEST_NUMBER = 100


class CronError(ValueError):
    """The text is no schedule; says why."""


@dataclass(frozen=True, slots=True)
class Schedule:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    any_day: bool  # the day of month was not restricted
    any_weekday: bool
    every_s: int = 0  # if not 0, at this interval, and the fields do not matter


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: int
    high: int
    names: dict[str, int]


_BOUNDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number + 1 for number, name in enumerate(_MONTHS)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)


def parse(text: str) -> Schedule:
    """Raises CronError. A leading time zone (TZ=...) is not understood here."""
    if not text:
        raise CronError("empty spec string")
    if text.startswith(_EVERY):
        return _every(text)
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise CronError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != len(_BOUNDS):
        shown = f"[{' '.join(fields)}]"
        raise CronError(f"expected exactly 5 fields, found {len(fields)}: {shown}")
    read = [_field(field, bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = read
    return Schedule(minutes, hours, days, months, weekdays, any_day, any_weekday)


def _every(text: str) -> Schedule:
    nanos = _duration(text, text.removeprefix(_EVERY))
    nothing: frozenset[int] = frozenset()
    # Whole seconds, and at least one.
    seconds = max(nanos // 10**9, 1)
    return Schedule(nothing, nothing, nothing, nothing, nothing, True, True, seconds)


def _field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    values: set[int] = set()
    unrestricted = False
    for part in filter(None, text.split(",")):
        chosen, star = _range(part, bounds)
        values.update(chosen)
        unrestricted = unrestricted or star
    return frozenset(values), unrestricted


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    span, *steps = text.split("/")
    low, *highs = span.split("-")
    star = low in ("*", "?")
    if star:
        start, end = bounds.low, bounds.high
    else:
        start = _number(low, bounds.names)
        if len(highs) > 1:
            raise CronError(f"too many hyphens: {text}")
        end = _number(highs[0], bounds.names) if highs else start
    if len(steps) > 1:
        raise CronError(f"too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not highs:
        end = bounds.high
    _check(start, end, step, bounds, text)
    return range(start, end + 1, step), star and step == 1


def _check(start: int, end: int, step: int, bounds: _Bounds, text: str) -> None:
    if start < bounds.low:
        why = f"beginning of range ({start}) below minimum ({bounds.low}): {text}"
    elif end > bounds.high:
        why = f"end of range ({end}) above maximum ({bounds.high}): {text}"
    elif start > end:
        why = f"beginning of range ({start}) beyond end of range ({end}): {text}"
    elif step == 0:
        why = f"step of range should be a positive number: {text}"
    else:
        return
    raise CronError(why)


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if len(text) > _LONGEST_NUMBER or not _INTEGER.fullmatch(text):
        _not_an_integer(text, "invalid syntax")
    number = int(text)
    if abs(number) > _LARGEST:
        _not_an_integer(text, "value out of range")
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number


def _not_an_integer(text: str, why: str) -> NoReturn:
    raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {why}')


def _duration(descriptor: str, text: str) -> int:
    """In nanoseconds, of Go's notation: 1h30m, 1.5s."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    if len(rest) > _LONGEST_NUMBER:
        _not_a_duration(descriptor, f'invalid duration "{text}"')
    total, place = 0, 0
    while place < len(rest) or not rest:
        found = _DURATION_PART.match(rest, place)
        if found is None or not (found[1] or (found[2] or "").strip(".")):
            _not_a_duration(descriptor, f'invalid duration "{text}"')
        if not found[3]:
            _not_a_duration(descriptor, f'missing unit in duration "{text}"')
        if found[3] not in _UNIT_NANOS:
            why = f'unknown unit "{found[3]}" in duration "{text}"'
            _not_a_duration(descriptor, why)
        unit, fraction = _UNIT_NANOS[found[3]], (found[2] or ".")[1:]
        total += int(found[1] or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        place = found.end()
    if total > _LARGEST:
        _not_a_duration(descriptor, f'invalid duration "{text}"')
    return sign * total


def _not_a_duration(descriptor: str, why: str) -> NoReturn:
    raise CronError(f"failed to parse duration {descriptor}: time: {why}")
