"""The query of a request for logs, checked in the words of Kubernetes."""

import re
from datetime import UTC, datetime, timedelta, timezone

from kubeclient.selectors import integer
from localkube.apiserver.request import Request
from localkube.apiserver.status import (
    FieldError,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
)
from localkube.node_streams import LogOptions

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")

# Go's layout of RFC 3339, element by element: its errors name the first that does not fit.
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_ELEMENTS = (
    ("2006", re.compile(r"[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile(r"[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile(r"[0-9]{2}")),
    ("T", re.compile("T")),
    ("15", re.compile(r"[0-9]{2}")),
    (":", re.compile(":")),
    ("04", re.compile(r"[0-9]{2}")),
    (":", re.compile(":")),
    ("05", re.compile(r"[0-9]{2}(?:[.,][0-9]+)?")),
    ("Z07:00", re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")),
)
_RANGES = (("month", 1, 12), ("day", 1, 31), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59))


def log_options(request: Request, pod_name: str) -> LogOptions:
    """The container as asked for, which may be none. Raises ApiError."""
    options = LogOptions(
        container=request.text("container"),
        follow=request.flag("follow"),
        previous=request.flag("previous"),
        timestamps=request.flag("timestamps"),
        tail_lines=_integer(request, "tailLines"),
        limit_bytes=_integer(request, "limitBytes"),
        since_seconds=_integer(request, "sinceSeconds"),
        since_time=_time(request.text("sinceTime")),
    )
    errors = _errors(options)
    if "stream" in request.query:
        errors.append(forbidden_field("stream", "may not be specified"))
    if errors:
        raise invalid("PodLogOptions", "", pod_name, errors)
    return options


def _errors(options: LogOptions) -> list[FieldError]:
    errors = []
    if options.tail_lines is not None and options.tail_lines < 0:
        errors.append(
            invalid_value("tailLines", options.tail_lines, "must be greater than or equal to 0")
        )
    if options.limit_bytes is not None and options.limit_bytes < 1:
        errors.append(invalid_value("limitBytes", options.limit_bytes, "must be greater than 0"))
    if options.since_seconds is not None:
        if options.since_time is not None:
            detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
            errors.append(forbidden_field("[]", detail))
        elif options.since_seconds < 1:
            errors.append(
                invalid_value("sinceSeconds", options.since_seconds, "must be greater than 0")
            )
    return errors


def _integer(request: Request, key: str) -> int | None:
    values = request.query.get(key)
    if values is None:
        return None
    text = values[0]
    if not _INTEGER.match(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    # Python would take its time over the digits that Go never looks at.
    number = integer(text)
    if number is None:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def _time(text: str) -> datetime | None:
    if not text:
        return None
    found, rest = [], text
    for name, pattern in _ELEMENTS:
        match = pattern.match(rest)
        if match is None:
            raise bad_request(
                f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{rest}" as "{name}"'
            )
        found.append(match.group())
        rest = rest[match.end() :]
    if rest:
        raise bad_request(f'parsing time "{text}": extra text: "{rest}"')
    return _assembled(text, found)


def _assembled(text: str, found: list[str]) -> datetime:
    second, _, fraction = found[10].replace(",", ".").partition(".")
    numbers = [int(part) for part in (found[2], found[4], found[6], found[8], second)]
    for number, (name, least, most) in zip(numbers, _RANGES, strict=True):
        if not least <= number <= most:
            raise bad_request(f'parsing time "{text}": {name} out of range')
    month, day, hour, minute, seconds = numbers
    microseconds = int(f"{fraction:0<6}"[:6])
    try:
        zone = _zone(found[11])
        return datetime(int(found[0]), month, day, hour, minute, seconds, microseconds, zone)
    except ValueError:
        raise bad_request(f'parsing time "{text}": day out of range') from None


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    return timezone(-offset if text[0] == "-" else offset)
