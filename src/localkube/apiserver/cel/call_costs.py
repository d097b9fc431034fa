"""What the call of a function or an operator may cost at most, without its arguments. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from localkube.apiserver.cel.functions import FUNCTIONS
from localkube.apiserver.cel.shapes import (
    ANY,
    BOOL,
    DYN,
    INT,
    STRING,
    UNBOUNDED,
    Shape,
    Size,
    list_of,
    optional,
    scaled,
)

_TEXT = 0.1  # of a unit, for a character that is looked at
_PATTERN = 0.25
_TEXTS = ("string", "bytes")
_NEW_LIST = 11
_TYPES = {
    "bool": BOOL,
    "int": INT,
    "string": STRING,
    "list": list_of(DYN),
    "optional_type": optional(DYN),
    "google.protobuf.Timestamp": Shape("timestamp"),
    "google.protobuf.Duration": Shape("duration"),
}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a part of an expression."""

    cost: int
    type: Shape
    size: Size | None  # None: nothing is known
    path: Shape | None = None  # where the schema has it
    has_path: bool = False
    entry: Size | None = None  # of the items of a list, or the values of a map
    keys: Size | None = None
    literal: int | None = None

    @property
    def longest(self) -> int:
        return (self.size or ANY).most


class Made(NamedTuple):
    cost: int
    type: Shape
    size: Size | None = None
    entry: Size | None = None


_Cost: TypeAlias = Callable[[str, Known | None, list[Known]], Made]


def by_type(name: str, target: Known | None, args: list[Known]) -> Made:
    """One unit, as most functions cost."""
    function = FUNCTIONS.get(name)
    kind = function.result if function is not None else "dyn"
    return Made(1, _TYPES.get(kind) or Shape(kind) if isinstance(kind, str) else DYN)


def _equality(name: str, target: Known | None, args: list[Known]) -> Made:
    one, other = args
    if one.type.kind == other.type.kind == _QUANTITY:
        return Made(1, BOOL)
    return Made(scaled(min(one.longest, other.longest), _TEXT), BOOL)


def _order(name: str, target: Known | None, args: list[Known]) -> Made:
    kinds = {arg.type.kind for arg in args}
    if kinds & set(_TEXTS):
        return _equality(name, target, args)
    most = _equality(name, target, args).cost if kinds == {"dyn"} else 1
    return Made(max(most, 1), BOOL)


def _sum(name: str, target: Known | None, args: list[Known]) -> Made:
    left, right = args
    kinds = {left.type.kind, right.type.kind}
    one, other = left.size or ANY, right.size or ANY
    size = Size(one.least + other.least, min(one.most + other.most, UNBOUNDED))
    entry = left.entry.joined(right.entry) if left.entry and right.entry else None
    type_ = right.type if left.type.kind == "dyn" else left.type
    if kinds & set(_TEXTS):
        return Made(scaled(size.most, _TEXT), type_, size)
    if "list" in kinds:
        return Made(1, type_, size, entry)
    if kinds == {"dyn"}:
        return Made(max(scaled(size.most, _TEXT), 1), DYN, size, entry)
    return Made(1, type_)


def _number(name: str, target: Known | None, args: list[Known]) -> Made:
    return Made(1, args[0].type)


def _not(name: str, target: Known | None, args: list[Known]) -> Made:
    return Made(1, BOOL)


def _in(name: str, target: Known | None, args: list[Known]) -> Made:
    kind = args[1].type.kind
    return Made(1 if kind in ("map", "object") else args[1].longest, BOOL)


def _matches(name: str, target: Known | None, args: list[Known]) -> Made:
    if target is None:
        return Made(1, BOOL)  # kube-apiserver's: only x.matches(y) is known to be dear
    cost = scaled(target.longest + 1, _TEXT) * scaled(args[0].longest, _PATTERN)
    return Made(cost, BOOL)


def _contains(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    return Made(scaled(target.longest, _TEXT) * scaled(args[0].longest, _TEXT), BOOL)


def _ends(name: str, target: Known | None, args: list[Known]) -> Made:
    return Made(scaled(args[0].longest, _TEXT), BOOL)


def _through_list(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    is_place = name in ("indexOf", "lastIndexOf")
    if target.type.kind != "list":
        return Made(scaled(target.longest, _TEXT), INT)
    item = target.type.items or DYN
    each = 1
    if item.kind in _TEXTS:
        each += scaled(_item_size(target).most, _TEXT)
    result = INT if is_place else BOOL if name == "isSorted" else item
    return Made(target.longest * each, result)


def _item_size(listed: Known) -> Size:
    if not listed.has_path:
        return ANY
    inner = listed.path.inner("@item") if listed.path else None
    return Size(0, inner.most) if inner else ANY


def _copied(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    return Made(scaled(target.longest, _TEXT), STRING, target.size or ANY)


def _replace(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    text = target.size or ANY
    old, new = args[0].size or ANY, args[1].size or ANY
    if old.least == 0:  # an empty text is found between all characters
        most = min(text.most + 1, UNBOUNDED) * new.most + text.most
    elif new.most <= old.least:
        most = text.most
    else:
        most = math.ceil(text.most / old.least) * new.most
    if old.most == 0:
        least = (text.least + 1) * new.least + text.least
    elif old.most <= new.least:
        least = text.least
    else:
        least = math.ceil(text.least / old.most) * new.least
    size = Size(least, min(most, UNBOUNDED))
    return Made(scaled(text.most, 2 * _TEXT), STRING, size)


def _split(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    most = target.longest
    if len(args) > 1 and args[1].literal is not None:
        most = args[1].literal % (UNBOUNDED + 1)
    return Made(scaled(target.longest, 2 * _TEXT), list_of(STRING), Size(0, most))


def _join(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    items = target.size or ANY
    each = _item_size(target)
    least, most = items.least * each.least, items.most * each.most
    if args:
        between = args[0].size or ANY
        least += max(items.least - 1, 0) * between.least
        most += max(items.most - 1, 0) * between.most
    size = Size(least, min(most, UNBOUNDED))
    return Made(scaled(size.most, _TEXT), STRING, size)


def _format(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    return Made(scaled(target.longest, _TEXT), STRING)


def _parsed(name: str, target: Known | None, args: list[Known]) -> Made:
    type_ = Shape(_QUANTITY) if name == "quantity" else BOOL
    return Made(scaled(args[0].longest, _TEXT), type_)


def _to_text(name: str, target: Known | None, args: list[Known]) -> Made:
    only = args[0]
    if only.type.kind not in ("bytes", "dyn"):
        return Made(1, STRING)
    size = only.size or ANY
    cost = scaled(size.most, _TEXT)
    found = Size(size.least // 4, size.most)
    return Made(cost if only.type.kind == "bytes" else max(cost, 1), STRING, found)


def _to_bytes(name: str, target: Known | None, args: list[Known]) -> Made:
    size = args[0].size or ANY
    if args[0].type.kind == "bytes":
        return Made(1, Shape("bytes"))
    longest = size.most * 4 % (UNBOUNDED + 1)
    return Made(scaled(size.most, _TEXT), Shape("bytes"), Size(size.least, longest))


def _sets(name: str, target: Known | None, args: list[Known]) -> Made:
    factor = 2 if name == "sets.equivalent" else 1
    return Made(args[0].longest * args[1].longest * factor + 1, BOOL)


def _new_list(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    size = target.size or ANY
    type_ = target.type
    factor = 1.0
    if name in ("sort", "distinct"):
        size = Size(size.least**2, min(size.most**2, UNBOUNDED))
        is_text = name == "sort" and type_.items is not None and type_.items.kind in _TEXTS
        factor = 2.1 if is_text else 2.0
    elif name == "flatten":
        type_ = list_of((type_.items.items if type_.items else None) or DYN)
        factor = float(
            (args[0].literal if args[0].literal is not None else UNBOUNDED) if args else 1
        )
    elif name == "slice":
        start = args[0].literal or 0
        end = size.most if args[1].literal is None else args[1].literal
        size = Size(end - start, end - start)
    return Made(scaled(size.most, factor) + _NEW_LIST, type_, size)


def _range(name: str, target: Known | None, args: list[Known]) -> Made:
    count = UNBOUNDED if args[0].literal is None else args[0].literal
    return Made(count + _NEW_LIST, list_of(INT), Size(count, count))


def _held(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    held = target.type.items or DYN
    return Made(1, target.type if name == "or" else held)


def _end(name: str, target: Known | None, args: list[Known]) -> Made:
    assert target is not None
    return Made(1, optional(target.type.items or DYN))


def _holding(name: str, target: Known | None, args: list[Known]) -> Made:
    return Made(1, optional(args[0].type))


_QUANTITY = "kubernetes.Quantity"
CALL_COSTS: dict[str, _Cost] = {
    **dict.fromkeys(("_==_", "_!=_"), _equality),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("_-_", "_*_", "_/_", "_%_", "-_"), _number),
    **dict.fromkeys(("startsWith", "endsWith"), _ends),
    **dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"), _through_list),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _copied),
    **dict.fromkeys(("quantity", "isQuantity"), _parsed),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _sets),
    **dict.fromkeys(("slice", "flatten", "reverse", "distinct", "sort"), _new_list),
    **dict.fromkeys(("or", "orValue", "value"), _held),
    **dict.fromkeys(("first", "last"), _end),
    **dict.fromkeys(("optional.of", "optional.ofNonZeroValue"), _holding),
    "_+_": _sum,
    "!_": _not,
    "@in": _in,
    "matches": _matches,
    "contains": _contains,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "format": _format,
    "string": _to_text,
    "bytes": _to_bytes,
    "lists.range": _range,
}
