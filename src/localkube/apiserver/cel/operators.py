"""Arithmetic: whole numbers have 64 bits, and types do not mix."""

import math
from collections.abc import Callable
from typing import Any

from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.times import Moment, OutOfRange, Span
from localkube.apiserver.cel.values import Uint, contains, equal, less, pieces

_BOUNDS: dict[type, tuple[int, int]] = {int: (-(1 << 63), 1 << 63), Uint: (0, 1 << 64)}


def _bounded(value: int, kind: type) -> int:
    low, high = _BOUNDS[kind]
    if not low <= value < high:
        raise EvaluationError(f"{'unsigned ' if kind is Uint else ''}integer overflow")
    return value if kind is int else Uint(value)


def add(frame: Frame, left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right):
        if kind in _BOUNDS:
            return _bounded(int(left) + int(right), kind)
        if kind in (str, bytes):
            frame.charge(pieces(len(left) + len(right)))
            return left + right
        if kind is list:
            frame.charge(len(left) + len(right))
            return left + right
        if kind is float:
            return left + right
    match left, right:
        case Span(), Span():
            return _timed(lambda: Span(left.nanos + right.nanos))
        case Moment(), Span():
            return _timed(lambda: left.later(right.nanos))
        case Span(), Moment():
            return _timed(lambda: right.later(left.nanos))
        case _:
            pass
    raise no_such_overload()


def subtract(frame: Frame, left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right) and kind in _BOUNDS:
        return _bounded(int(left) - int(right), kind)
    if kind is float and type(right) is float:
        return left - right
    match left, right:
        case (Span(), Span()) | (Moment(), Moment()):
            return _timed(lambda: Span(left.nanos - right.nanos))
        case Moment(), Span():
            return _timed(lambda: left.later(-right.nanos))
        case _:
            pass
    raise no_such_overload()


def _timed(made: Callable[[], Moment | Span]) -> Moment | Span:
    try:
        return made()
    except OutOfRange as error:
        raise EvaluationError(str(error)) from None


def multiply(frame: Frame, left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right) and kind in _BOUNDS:
        return _bounded(int(left) * int(right), kind)
    if kind is float and type(right) is float:
        return left * right
    raise no_such_overload()


def divide(frame: Frame, left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is type(right) and kind in _BOUNDS:
        if right == 0:
            raise EvaluationError("division by zero")
        return _bounded(_quotient(int(left), int(right)), kind)
    if kind is float and type(right) is float:
        if right == 0:
            if left == 0 or math.isnan(left):
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1, right)
        return left / right
    raise no_such_overload()


def modulo(frame: Frame, left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in _BOUNDS:
        raise no_such_overload()
    if right == 0:
        raise EvaluationError("modulus by zero")
    one, other = int(left), int(right)
    return _bounded(one - other * _quotient(one, other), kind)


def _quotient(left: int, right: int) -> int:
    """Towards zero, where Python's goes down."""
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def negate(frame: Frame, value: Any) -> Any:
    if type(value) is int:
        return _bounded(-value, int)
    if type(value) is float:
        return -value
    raise no_such_overload()


def invert(frame: Frame, value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_such_overload()
    return not value


OPERATORS: dict[str, Callable[..., Any]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": invert,
    "_==_": lambda frame, left, right: equal(left, right, frame.charge),
    "_!=_": lambda frame, left, right: not equal(left, right, frame.charge),
    "_<_": lambda frame, left, right: less(left, right, frame.charge),
    "_>_": lambda frame, left, right: less(right, left, frame.charge),
    "_<=_": lambda frame, left, right: _at_most(left, right, frame),
    "_>=_": lambda frame, left, right: _at_most(right, left, frame),
    "@in": lambda frame, wanted, container: contains(container, wanted, frame.charge),
}


def _at_most(left: Any, right: Any, frame: Frame) -> bool:
    return less(left, right, frame.charge) or equal(left, right, frame.charge)
