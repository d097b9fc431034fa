"""Functions of the language itself: sizes, conversions between types, and parts of times."""

import datetime
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.function import Function, free, method
from localkube.apiserver.cel.times import (
    SECOND,
    Moment,
    OutOfRange,
    Span,
    parse_moment,
    parse_span,
    zone_of,
)
from localkube.apiserver.cel.types import BOOL, DYN, INT, STRING
from localkube.apiserver.cel.values import TypeValue, Uint, pieces, type_name

_INT = (-(1 << 63), 1 << 63)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_DOUBLE = re.compile(
    r"[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE
)


def _size(frame: Frame, value: Any) -> int:
    if not isinstance(value, str | bytes | list | Mapping):
        raise no_such_overload()
    return len(value)


def _to_int(frame: Frame, value: Any) -> int:
    if isinstance(value, Moment):
        return value.nanos // SECOND
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
        return _double_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        frame.charge(pieces(len(value)))
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Moment | Span):
        return str(value)
    raise no_such_overload()


def _double_text(value: float) -> str:
    """As Go's %g: the shortest digits, with an exponent below 0.0001 and from a million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, place = "".join(map(str, digits)), exponent + len(digits) - 1
    if -5 < place < 6:
        shown = f"{Decimal((0, digits, exponent)):f}"
    else:
        shown = f"{text[0]}{f'.{text[1:]}' if text[1:] else ''}e{place:+03d}"
    return f"-{shown}" if sign else shown


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


def _to_time(frame: Frame, value: Any) -> Moment:
    if isinstance(value, Moment):
        return value
    if isinstance(value, str):
        frame.charge(pieces(len(value)))
    try:
        if type(value) is int:
            return Moment(value * SECOND)
        if isinstance(value, str):
            return parse_moment(value)
    except ValueError:
        raise EvaluationError(f'parsing time "{value}" as RFC 3339 failed') from None
    raise no_such_overload()


def _to_duration(frame: Frame, value: Any) -> Span:
    if isinstance(value, Span):
        return value
    if not isinstance(value, str):
        raise no_such_overload()
    try:
        if len(value) < 100:
            return parse_span(value)
    except OutOfRange:
        raise EvaluationError("duration out of range") from None
    except ValueError:
        pass
    raise EvaluationError(f'time: invalid duration "{value[:100]}"')


def _of_time(part: Callable[[datetime.datetime], int], unit: int | None = None) -> Function:
    """`unit`: how many nanoseconds of a duration make one."""

    def run(frame: Frame, value: Any, zone: Any = "UTC") -> int:
        if isinstance(value, Span) and unit is not None and zone == "UTC":
            return value.nanos // unit if value.nanos >= 0 else -(-value.nanos // unit)
        if not isinstance(value, Moment) or not isinstance(zone, str):
            raise no_such_overload()
        try:
            return part(value.within(zone_of(zone)))
        except (ValueError, OverflowError) as error:
            raise EvaluationError(str(error)) from None

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
    "getHours": _of_time(lambda time: time.hour, 3600 * SECOND),
    "getMinutes": _of_time(lambda time: time.minute, 60 * SECOND),
    "getSeconds": _of_time(lambda time: time.second, SECOND),
    "getMilliseconds": _of_time(lambda time: time.microsecond // 1000, SECOND // 1000),
}
