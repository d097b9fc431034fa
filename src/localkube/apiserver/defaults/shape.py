"""Gives objects the shape that Kubernetes' Go types have, so that what is stored looks the same.

A Go type cannot tell `hostNetwork: false` from no `hostNetwork`, writes `resources: {}` even if
nobody sent it, and knows a quantity only in its canonical form. data/shapes.json says per type
which fields are of which sort; `normalise` brings a parsed object into that form. Nulls mean absent
and are left out, but for times that Go writes as null (`nulls`).
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver import data
from localkube.apiserver.memory import remembered


@dataclass(slots=True)
class Shape:
    """Mutable only while it is being built: shapes may refer to one another in circles."""

    dropped: frozenset[str] = frozenset()  # left out when zero or empty
    # Written even if absent: the zero value, or None for a struct made by its own shape.
    always: tuple[tuple[str, Any], ...] = ()
    below: dict[str, "Shape"] = field(default_factory=dict)  # structs, and lists of them
    maps: dict[str, "Shape"] = field(default_factory=dict)  # maps of structs
    quantities: frozenset[str] = frozenset()  # quantities, and maps of them
    structured: frozenset[str] = frozenset()  # all keys of the three above
    nulls: tuple[str, ...] = ()  # times that are written as null when they are absent


METADATA = "meta.v1.ObjectMeta"


def shape_of(api_version: str, kind: str) -> Shape | None:
    """None for kinds that Kubernetes does not define."""
    name = _document()["kinds"].get(f"{api_version}/{kind}")
    return None if name is None else named(name)


def normalise(value: Obj, shape: Shape) -> None:
    """Changes `value` in place."""
    structured = shape.structured
    empty: list[str] | None = None
    for key, inner in value.items():
        if not inner:
            if _left_out(key, inner, shape):
                empty = [key] if empty is None else [*empty, key]
        elif key in structured:
            _normalise_inner(value, key, inner, shape)
    if empty is not None:
        for key in empty:
            del value[key]
    for key, zero in shape.always:
        if key not in value:
            value[key] = zero if zero is not None else zero_value(shape.below[key])
    for key in shape.nulls:
        value.setdefault(key, None)


def _left_out(key: str, empty: Any, shape: Shape) -> bool:
    """Whether an empty value is left out; one that stays is normalised."""
    if key in shape.dropped or (empty is None and key not in shape.nulls):
        return True
    if empty == {} and key in shape.below and shape.below[key].always:
        normalise(empty, shape.below[key])
    return False


def zero_value(shape: Shape) -> Obj:
    made: Obj = {}
    normalise(made, shape)
    return made


def _normalise_inner(value: Obj, key: str, inner: Any, shape: Shape) -> None:
    below = shape.below.get(key)
    if below is not None:
        if type(inner) is dict:
            normalise(inner, below)
        else:
            for place, element in enumerate(inner):
                if element is None:  # an empty struct, to Go
                    inner[place] = element = {}
                normalise(element, below)
    elif key in shape.quantities:
        value[key] = _canonical(inner)
    else:
        for element in inner.values():
            normalise(element, shape.maps[key])


def _canonical(value: Any) -> Any:
    """Of a quantity, of a map of them, or of a list."""
    if type(value) is list:
        return ["0" if each is None else _canonical(each) for each in value]
    if type(value) is dict:
        for name, amount in value.items():
            value[name] = _in_milli(_text(amount))
        return value
    return quantity.parse(_text(value)).text


@remembered(4096)
def _in_milli(text: str) -> str:
    return quantity.to_milli(quantity.parse(text)).text


def _text(value: Any) -> str:
    return value if type(value) is str else repr(value)


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = data.read("shapes.json")
    return document


_built: dict[str, Shape] = {}


def named(name: str) -> Shape:
    """The shape of the Go type `name`: "core.v1.PodTemplateSpec"."""
    if name not in _built:
        shape = _built[name] = Shape()
        row = _document()["shapes"][name]
        shape.dropped = frozenset(row.get("dropped", ()))
        shape.below = {key: named(inner) for key, inner in row.get("fields", {}).items()}
        shape.maps = {key: named(inner) for key, inner in row.get("maps", {}).items()}
        shape.quantities = frozenset(row.get("quantities", ()))
        shape.nulls = tuple(row.get("nulls", ()))
        shape.always = tuple(
            (key, None if zero == {} else zero) for key, zero in row.get("always", {}).items()
        )
        shape.structured = frozenset(shape.below) | frozenset(shape.maps) | shape.quantities
    return _built[name]
