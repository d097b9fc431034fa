"""Timestamps and durations of CEL, to the nanosecond; Python's own end at microseconds.

Timestamps are of the years 1 to 9999, and durations of 64 bits, as in kube-apiserver.
"""

import datetime
import re
import zoneinfo
from dataclasses import dataclass, field

SECOND = 1_000_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
_LONGEST = 1 << 63
# Python reads more than these: weeks and days of the year, spaces and underscores in numbers.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+|0)", re.ASCII)
_PART = re.compile(r"(?<!\d)(\d+)(?:\.(\d*))?(ns|us|µs|ms|s|m|h)", re.ASCII)
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND}
_UNITS["h"] = 3600 * SECOND
_OFFSET = re.compile(r"([+-]?\d+):([+-]?\d+)", re.ASCII)


class OutOfRange(ValueError):
    pass


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A duration."""

    nanos: int

    def __post_init__(self) -> None:
        if not -_LONGEST <= self.nanos < _LONGEST:
            raise OutOfRange("duration overflow")

    def __str__(self) -> str:
        return f"{_decimal(self.nanos)}s"


@dataclass(frozen=True, order=True, slots=True)
class Moment:
    """A timestamp: nanoseconds since 1970, and the offset that it was written with, as texts show
    it."""

    nanos: int
    offset_s: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if not _FIRST_S <= self.nanos // SECOND <= _LAST_S:
            raise OutOfRange("timestamp overflow")

    def __str__(self) -> str:
        zone = datetime.timezone(datetime.timedelta(seconds=self.offset_s))
        text = self.within(zone).replace(microsecond=0).isoformat()
        text, mark = (text[:-6], text[-6:]) if self.offset_s else (text[:-6], "Z")
        fraction = f"{self.nanos % SECOND:09d}".rstrip("0")
        return f"{text}.{fraction}{mark}" if fraction else f"{text}{mark}"

    def later(self, nanos: int) -> "Moment":
        return Moment(self.nanos + nanos, self.offset_s)

    def within(self, zone: datetime.tzinfo) -> datetime.datetime:
        """Without what is below a microsecond. Raises OverflowError at the ends of the calendar."""
        since = datetime.timedelta(microseconds=self.nanos // 1000)
        return (_EPOCH + since).astimezone(zone)


def parse_moment(text: str) -> Moment:
    """Raises ValueError."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    written = datetime.datetime.fromisoformat(f"{match[1]}{match[3]}")
    whole, offset = written - _EPOCH, written.utcoffset() or datetime.timedelta()
    fraction = int((match[2] or "")[:9].ljust(9, "0"))
    seconds = whole.days * 86_400 + whole.seconds
    return Moment(seconds * SECOND + fraction, round(offset.total_seconds()))


def parse_span(text: str) -> Span:
    """Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    total = 0
    for whole, fraction, unit in _PART.findall(match[2]):
        scale = _UNITS[unit]
        total += int(whole) * scale
        total += int(fraction or "0") * scale // 10 ** len(fraction)
    return Span(-total if match[1] == "-" else total)


def zone_of(name: str) -> datetime.tzinfo:
    """By its name, or as the offset "+01:00". Raises ValueError with the words of Go."""
    if name in ("", "UTC"):
        return datetime.UTC
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is not None:
            hours, minutes = int(offset[1]), int(offset[2])
            minutes = hours * 60 - minutes if name.startswith("-") else hours * 60 + minutes
            return datetime.timezone(datetime.timedelta(minutes=minutes))
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, KeyError, OverflowError):
        raise ValueError(f"unknown time zone {name}") from None


def _decimal(nanos: int) -> str:
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    fraction = f"{nanos % SECOND:09d}".rstrip("0")
    return f"{sign}{nanos // SECOND}.{fraction}" if fraction else f"{sign}{nanos // SECOND}"
