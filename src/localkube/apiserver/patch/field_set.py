"""Sets of field paths, kept in the form in which objects carry them: FieldsV1.

A set is a tree of path elements. What lies under an element says whether the element itself is a
member of the set, or only on the way to members:

    {"f:data": {}}                       .data
    {"f:data": {"f:a": {}}}              .data.a
    {"f:data": {".": {}, "f:a": {}}}     .data and .data.a

Sets are values: nothing here, and nobody else, changes one in place, so they share their parts.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from localkube.apiserver.patch import path_element
from localkube.apiserver.patch.path_element import SELF, BadElement, UnknownElement

FieldSet: TypeAlias = dict[str, "FieldSet"]

LEAF: Final[FieldSet] = {}


def is_member(under: FieldSet) -> bool:
    return not under or SELF in under


def in_order(elements: FieldSet) -> FieldSet:
    """The same set, its first level in the order of path_element."""
    if len(elements) < 2:
        return elements
    # The elements of one level are of one type, and fields sort as their spelling does.
    if next(reversed(elements))[0] == "f":
        return {element: elements[element] for element in sorted(elements)}
    return {element: elements[element] for element in sorted(elements, key=path_element.order)}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    if one is other or not other:
        return one
    if not one:
        return other
    both = dict(one)
    for element, under in other.items():
        mine = both.get(element)
        both[element] = under if mine is None else _joined(mine, under)
    return both if len(both) == len(one) else in_order(both)


def _joined(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one:
        return other if is_member(other) else {SELF: LEAF, **other}
    if not other:
        return one if is_member(one) else {SELF: LEAF, **one}
    return union(one, other)


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of `one` that are not in `other`. What lies below a removed member stays."""
    left: FieldSet = {}
    for element, under in one.items():
        minus = other.get(element)
        if minus is None:
            left[element] = under
        else:
            rest = _without(under, minus)
            if rest is not None:
                left[element] = rest
    return left


def _without(under: FieldSet, minus: FieldSet) -> FieldSet | None:
    keeps_itself = is_member(under) and not is_member(minus)
    rest: FieldSet = {SELF: LEAF} if keeps_itself else {}
    for element, deeper in under.items():
        if element == SELF:
            continue
        removed = minus.get(element)
        remains = deeper if removed is None else _without(deeper, removed)
        if remains is not None:
            rest[element] = remains
    return _closed(rest)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    shared: FieldSet = {}
    for element, under in one.items():
        theirs = other.get(element)
        if theirs is not None:
            both = _shared(under, theirs)
            if both is not None:
                shared[element] = both
    return shared


def _shared(one: FieldSet, other: FieldSet) -> FieldSet | None:
    rest: FieldSet = {SELF: LEAF} if is_member(one) and is_member(other) else {}
    for element, under in one.items():
        theirs = other.get(element) if element != SELF else None
        if theirs is not None:
            both = _shared(under, theirs)
            if both is not None:
                rest[element] = both
    return _closed(rest)


def _closed(under: FieldSet) -> FieldSet | None:
    """{".": {}} is written {}; nothing at all is None."""
    if not under:
        return None
    return LEAF if len(under) == 1 and SELF in under else under


def covers(one: FieldSet, other: FieldSet) -> bool:
    """Whether every member of `other` is a member of `one`."""
    return not difference(other, one)


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every member: those of a level first, then those below them."""
    for element, under in fields.items():
        if element != SELF and is_member(under):
            yield (*prefix, element)
    for element, under in fields.items():
        if element != SELF and under:
            yield from paths(under, (*prefix, element))


def path_text(path: tuple[str, ...]) -> str:
    return "".join(map(path_element.text, path))


class BadFields(ValueError):
    """Not FieldsV1."""


def from_json(fields: Any) -> FieldSet:
    """FieldsV1 from a client: checked, in the one normal form, without what nobody knows."""
    if fields is None:
        return {}
    found = _read(fields)
    return {} if found is None else {e: under for e, under in found.items() if e != SELF}


def _read(fields: Any) -> FieldSet | None:
    """None when there is nothing below, which makes the element itself the member."""
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise BadFields(f"wanted an object, found {fields!r}")
    found: FieldSet = {}
    for element, under in fields.items():
        if element == SELF:
            found[SELF] = LEAF
            continue
        try:
            found[path_element.normal(element)] = _read(under) or LEAF
        except UnknownElement:
            continue
        except BadElement as no:
            raise BadFields(str(no)) from None
    ordered = _closed(in_order(found))
    return ordered or None
