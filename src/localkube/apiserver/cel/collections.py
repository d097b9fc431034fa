"""Functions of lists, sets and optional values."""

from collections.abc import Mapping
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.function import Function, free, method
from localkube.apiserver.cel.operators import add
from localkube.apiserver.cel.types import BOOL, LIST, OPTIONAL, UNKNOWN
from localkube.apiserver.cel.values import Optional, contains, equal, less

_MAX_RANGE = 100_000


def _items(frame: Frame, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise no_such_overload()
    frame.charge(len(value))
    return value


def _is_sorted(frame: Frame, value: Any) -> bool:
    items = _items(frame, value)
    return not any(less(right, left, frame.charge) for left, right in pairwise(items))


def _sum(frame: Frame, value: Any) -> Any:
    items = _items(frame, value)
    found = items[0] if items else 0
    for item in items[1:]:
        found = add(frame, found, item)
    return found


def _least(frame: Frame, value: Any) -> Any:
    return _extreme(frame, value, "min", lambda one, other: less(one, other, frame.charge))


def _greatest(frame: Frame, value: Any) -> Any:
    return _extreme(frame, value, "max", lambda one, other: less(other, one, frame.charge))


def _extreme(frame: Frame, value: Any, name: str, is_better: Any) -> Any:
    items = _items(frame, value)
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    found = items[0]
    for item in items[1:]:
        if is_better(item, found):
            found = item
    return found


def _sort(frame: Frame, value: Any) -> list[Any]:
    def order(one: Any, other: Any) -> int:
        frame.charge(1)
        if less(one, other, frame.charge):
            return -1
        return 1 if less(other, one, frame.charge) else 0

    return sorted(_items(frame, value), key=cmp_to_key(order))


def _distinct(frame: Frame, value: Any) -> list[Any]:
    found: list[Any] = []
    for item in _items(frame, value):
        if not contains(found, item, frame.charge):
            found.append(item)
    return found


def _flatten(frame: Frame, value: Any, depth: Any = 1) -> list[Any]:
    if type(depth) is not int or depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for item in _items(frame, value):
        if isinstance(item, list) and depth:
            found += _flatten(frame, item, depth - 1)
        else:
            found.append(item)
    return found


def _slice(frame: Frame, value: Any, start: Any, end: Any) -> list[Any]:
    items = _items(frame, value)
    if type(start) is not int or type(end) is not int:
        raise no_such_overload()
    if not 0 <= start <= end <= len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _reverse(frame: Frame, value: Any) -> Any:
    if isinstance(value, str):
        frame.charge(len(value))
        return value[::-1]
    return _items(frame, value)[::-1]


def _range(frame: Frame, count: Any) -> list[int]:
    if type(count) is not int:
        raise no_such_overload()
    frame.charge(max(count, 0))
    if count > _MAX_RANGE:
        raise EvaluationError(f"range of {count} is longer than {_MAX_RANGE}")
    return list(range(count))


def _end(place: int) -> Any:
    def run(frame: Frame, value: Any) -> Optional:
        items = _items(frame, value)
        return Optional((items[place],)) if items else Optional.NONE

    return run


def _covers(frame: Frame, whole: Any, part: Any) -> bool:
    items = _items(frame, whole)
    return all(contains(items, item, frame.charge) for item in _items(frame, part))


def _intersects(frame: Frame, one: Any, other: Any) -> bool:
    items = _items(frame, one)
    return any(contains(items, item, frame.charge) for item in _items(frame, other))


def _equivalent(frame: Frame, one: Any, other: Any) -> bool:
    return _covers(frame, one, other) and _covers(frame, other, one)


def _held(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, Optional):
        raise no_such_overload()
    return value.values


def _or_value(frame: Frame, value: Any, other: Any) -> Any:
    return _held(value)[0] if _held(value) else other


def _or(frame: Frame, value: Any, other: Any) -> Any:
    return value if _held(value) else other


def _value(frame: Frame, value: Any) -> Any:
    if not _held(value):
        raise EvaluationError("optional.none() dereference")
    return _held(value)[0]


def _non_zero(frame: Frame, value: Any) -> Optional:
    empty = isinstance(value, str | bytes | list | Mapping) and not value
    zero = value is None or value is False or empty or equal(value, 0, frame.charge)
    return Optional.NONE if zero else Optional((value,))


COLLECTION_FUNCTIONS: dict[str, Function] = {
    "isSorted": method(_is_sorted, BOOL, 1),
    "sum": method(_sum, UNKNOWN, 1),
    "min": method(_least, UNKNOWN, 1),
    "max": method(_greatest, UNKNOWN, 1),
    "sort": method(_sort, LIST, 1),
    "distinct": method(_distinct, LIST, 1),
    "flatten": method(_flatten, LIST, 1, 2),
    "slice": method(_slice, LIST, 3),
    "reverse": method(_reverse, UNKNOWN, 1),
    "first": method(_end(0), OPTIONAL, 1),
    "last": method(_end(-1), OPTIONAL, 1),
    "lists.range": free(_range, LIST, 1),
    "sets.contains": free(_covers, BOOL, 2),
    "sets.intersects": free(_intersects, BOOL, 2),
    "sets.equivalent": free(_equivalent, BOOL, 2),
    "optional.of": free(lambda _, value: Optional((value,)), OPTIONAL, 1),
    "optional.none": Function(
        lambda _: Optional.NONE, OPTIONAL, 0, 0, is_method=False, is_free=True
    ),
    "optional.ofNonZeroValue": free(_non_zero, OPTIONAL, 1),
    "orValue": method(_or_value, UNKNOWN, 2),
    "or": method(_or, OPTIONAL, 2),
    "hasValue": method(lambda _, value: bool(_held(value)), BOOL, 1),
    "value": method(_value, UNKNOWN, 1),
}
