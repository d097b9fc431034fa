"""Functions of quantities, Kubernetes' numbers with units."""

import math
from typing import Any

from kubeclient.quantity import ParseError, Quantity, add, parse, subtract
from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.function import Function, free, method
from localkube.apiserver.cel.types import BOOL, INT
from localkube.apiserver.cel.values import pieces

_TYPE = "kubernetes.Quantity"
_NANO = 10**9


def _parsed(frame: Frame, text: Any) -> Quantity:
    if not isinstance(text, str):
        raise no_such_overload()
    frame.charge(pieces(len(text)))
    try:
        return parse(text)
    except ParseError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(frame: Frame, text: Any) -> bool:
    try:
        _parsed(frame, text)
    except EvaluationError:
        return False
    return True


def _nanos(value: Any) -> int:
    if not isinstance(value, Quantity):
        raise no_such_overload()
    return value.nanos


def _compared(frame: Frame, one: Any, other: Any) -> int:
    left, right = _nanos(one), _nanos(other)
    return (left > right) - (left < right)


def _operand(value: Any) -> Quantity:
    if type(value) is int:
        return parse(str(value))
    _nanos(value)
    return value  # type: ignore[no-any-return]


def _integer(frame: Frame, value: Any) -> int:
    nanos = _nanos(value)
    if nanos % _NANO or not -(1 << 63) <= nanos // _NANO < 1 << 63:
        raise EvaluationError("cannot convert value to integer")
    return nanos // _NANO


def _approximate(frame: Frame, value: Any) -> float:
    nanos = _nanos(value)
    try:
        return nanos / _NANO
    except OverflowError:
        return math.inf if nanos > 0 else -math.inf


QUANTITY_FUNCTIONS: dict[str, Function] = {
    "quantity": free(_parsed, _TYPE, 1),
    "isQuantity": free(_is_quantity, BOOL, 1),
    "isGreaterThan": method(lambda f, one, other: _compared(f, one, other) > 0, BOOL, 2),
    "isLessThan": method(lambda f, one, other: _compared(f, one, other) < 0, BOOL, 2),
    "compareTo": method(_compared, INT, 2),
    "sign": method(lambda _, value: (_nanos(value) > 0) - (_nanos(value) < 0), INT, 1),
    "isInteger": method(lambda _, value: _nanos(value) % _NANO == 0, BOOL, 1),
    "asInteger": method(_integer, INT, 1),
    "asApproximateFloat": method(_approximate, "double", 1),
    "add": method(lambda _, one, other: add(_operand(one), _operand(other)), _TYPE, 2),
    "sub": method(lambda _, one, other: subtract(_operand(one), _operand(other)), _TYPE, 2),
}
