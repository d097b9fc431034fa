"""Shape: what is known of a value before there is one. Size: how long it may be."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

UNBOUNDED = (1 << 64) - 1  # kube-apiserver's: what nothing is known about
SCALARS = frozenset({"bool", "int", "uint", "double", "duration", "timestamp"})


class Size(NamedTuple):
    """Of a text in characters, of a list in items, of a map in entries."""

    least: int
    most: int

    def joined(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))


ONE = Size(1, 1)
ANY = Size(0, UNBOUNDED)


@dataclass(frozen=True, slots=True)
class Shape:
    kind: str
    most: int = 0  # characters, items or entries
    smallest: int = 2  # bytes of its JSON
    fields: Mapping[str, "Shape"] = field(default_factory=dict)
    items: "Shape | None" = None  # of a list or a map; what an optional value holds

    def inner(self, step: str) -> "Shape | None":
        """`@item` of a list or a map, `@key` of a map, or a field."""
        if step == "@item":
            return self.items if self.kind in ("list", "map") else None
        if step == "@key":
            return STRING if self.kind == "map" else None
        return self.fields.get(step)


DYN, BOOL, INT, STRING = (Shape(kind) for kind in ("dyn", "bool", "int", "string"))


def list_of(items: Shape) -> Shape:
    return Shape("list", items=items)


def optional(held: Shape) -> Shape:
    return Shape("optional", items=held)


def is_scalar(shape: Shape) -> bool:
    """Its size is always one."""
    if shape.kind == "optional" and shape.items is not None:
        return is_scalar(shape.items)
    return shape.kind in SCALARS


def scaled(count: int, factor: float) -> int:
    """Rounded up, as a float of Go would be."""
    return min(UNBOUNDED, math.ceil(min(count, UNBOUNDED) * factor))
