"""Functions of the language itself: sizes, conversions between types, and parts of times."""

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any

from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.function import Function, free, method
from localkube.apiserver.cel.types import BOOL, DYN, INT, STRING
from localkube.apiserver.cel.values import TypeValue, Uint, pieces, type_name

_INT = (-(1 << 63), 1 << 63)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
# Python reads more than these: weeks and days of the year, spaces and underscores in numbers.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DOUBLE = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE
)
_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+|0)", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _size(frame: Frame, value: Any) -> int:
    if not isinstance(value, str | bytes | list | Mapping):
        raise no_such_overload()
    return len(value)


def _to_int(frame: Frame, value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return int(value.timestamp())
    found = _whole(value)
    if not _INT[0] <= found < _INT[1]:
        raise EvaluationError("integer overflow")
    return int(found)


def _to_uint(frame: Frame, value: Any) -> Uint:
    found = _whole(value)
    if not 0 <= found < 1 << 64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(found)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise no_such_overload()
    try:
        if isinstance(value, str) and not re.fullmatch(r"[+-]?\d{1,20}", value, re.ASCII):
            raise ValueError(value)
        return int(value)
    except (ValueError, OverflowError):
        raise EvaluationError(f"type conversion error from '{type_name(value)}' to 'int'") from None


def _to_double(frame: Frame, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise no_such_overload()
    if isinstance(value, str):
        frame.charge(pieces(len(value)))
    try:
        if isinstance(value, str) and not _DOUBLE.fullmatch(value):
            raise ValueError(value)
        return float(value)
    except (ValueError, OverflowError):
        kind = type_name(value)
        raise EvaluationError(f"type conversion error from '{kind}' to 'double'") from None


def to_string(frame: Frame, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        frame.charge(pieces(len(value)))
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, datetime.datetime):
        text = value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat()
        return f"{text.rstrip('0') if '.' in text else text}Z"
    if isinstance(value, datetime.timedelta):
        seconds = f"{value.total_seconds():f}"  # microseconds, as many as there are
        return f"{seconds.rstrip('0').rstrip('.')}s"
    raise no_such_overload()


def _to_bool(frame: Frame, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUE | _FALSE:
        return value in _TRUE
    if isinstance(value, str):
        raise EvaluationError("type conversion error from 'string' to 'bool'")
    raise no_such_overload()


def _to_bytes(frame: Frame, value: Any) -> bytes:
    if isinstance(value, str):
        frame.charge(pieces(len(value)))
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise no_such_overload()


def _to_time(frame: Frame, value: Any) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, str):
        frame.charge(pieces(len(value)))
    try:
        if type(value) is int:
            return datetime.datetime.fromtimestamp(value, datetime.UTC)
        if isinstance(value, str) and _TIME.fullmatch(value):
            found = datetime.datetime.fromisoformat(value)
            if found.tzinfo is not None:
                return found.astimezone(datetime.UTC)
    except (ValueError, OverflowError, OSError):
        pass
    if not isinstance(value, str | int):
        raise no_such_overload()
    raise EvaluationError(f'parsing time "{value}" as RFC 3339 failed')


def _to_duration(frame: Frame, value: Any) -> datetime.timedelta:
    if isinstance(value, datetime.timedelta):
        return value
    if not isinstance(value, str):
        raise no_such_overload()
    match = _DURATION.fullmatch(value) if len(value) < 100 else None
    if match is None:
        raise EvaluationError(f'time: invalid duration "{value[:100]}"')
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(match[2]))
    try:
        return datetime.timedelta(seconds=-seconds if match[1] == "-" else seconds)
    except OverflowError:
        raise EvaluationError("duration out of range") from None


def _of_time(
    part: Callable[[datetime.datetime], int], of_duration: Callable[[float], int] | None = None
) -> Function:
    def run(frame: Frame, value: Any, zone: Any = "UTC") -> int:
        if isinstance(value, datetime.timedelta) and of_duration is not None:
            return of_duration(value.total_seconds())
        if not isinstance(value, datetime.datetime) or zone != "UTC":
            raise no_such_overload()
        return part(value.astimezone(datetime.UTC))

    return method(run, INT, 1, 2)


CONVERSIONS: dict[str, Function] = {
    "size": Function(_size, INT, 1, 1, is_method=True, is_free=True),
    "int": free(_to_int, INT, 1),
    "uint": free(_to_uint, "uint", 1),
    "double": free(_to_double, "double", 1),
    "string": free(to_string, STRING, 1),
    "bool": free(_to_bool, BOOL, 1),
    "bytes": free(_to_bytes, "bytes", 1),
    "dyn": free(lambda _, value: value, DYN, 1),
    "type": free(lambda _, value: TypeValue(type_name(value)), "type", 1),
    "timestamp": free(_to_time, "google.protobuf.Timestamp", 1),
    "duration": free(_to_duration, "google.protobuf.Duration", 1),
    "getFullYear": _of_time(lambda time: time.year),
    "getMonth": _of_time(lambda time: time.month - 1),
    "getDate": _of_time(lambda time: time.day),
    "getDayOfMonth": _of_time(lambda time: time.day - 1),
    "getDayOfWeek": _of_time(lambda time: time.isoweekday() % 7),
    "getDayOfYear": _of_time(lambda time: time.timetuple().tm_yday - 1),
    "getHours": _of_time(lambda time: time.hour, lambda seconds: int(seconds / 3600)),
    "getMinutes": _of_time(lambda time: time.minute, lambda seconds: int(seconds / 60)),
    "getSeconds": _of_time(lambda time: time.second, int),
    "getMilliseconds": _of_time(
        lambda time: time.microsecond // 1000, lambda seconds: int(seconds * 1000)
    ),
}
