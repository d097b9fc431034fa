"""Types that are known before an expression is evaluated: a name, or the fields of a structure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """Only these fields may be named; what else there is cannot be asked for."""

    name: str
    fields: Mapping[str, "Type"]


Type: TypeAlias = str | Struct

DYN = "dyn"  # of any type, as a field of an object
UNKNOWN = "unknown"  # of one type, which we do not work out
BOOL = "bool"
INT = "int"
STRING = "string"
LIST = "list"
MAP = "map"
OPTIONAL = "optional_type"
_NUMBERS = frozenset({"int", "uint", "double"})
_SCALARS = _NUMBERS | {"bool", "string", "bytes", "null_type"}
# What `_+_` and its like take, both sides of the same type.
_OPERANDS = {
    "_+_": _NUMBERS | {"string", "bytes", "list", DYN},
    "_-_": _NUMBERS | {DYN},
    "_*_": _NUMBERS | {DYN},
    "_/_": _NUMBERS | {DYN},
    "_%_": frozenset({"int", "uint", DYN}),
}


def type_text(kind: Type) -> str:
    if isinstance(kind, Struct):
        return kind.name
    return {"list": "list(dyn)", "map": "map(dyn, dyn)", UNKNOWN: DYN}.get(kind, kind)


def operator_result(name: str, left: Type, right: Type) -> Type | None:
    """The type of `left + right` and the like; None if there is no such operation."""
    known = left in _SCALARS and right in _SCALARS
    if name in ("_==_", "_!=_"):
        differ = left != right and "null_type" not in (left, right)
        return None if known and differ else BOOL
    if name in ("_<_", "_<=_", "_>_", "_>=_"):
        both = left in _NUMBERS and right in _NUMBERS
        return None if known and left != right and not both else BOOL
    if name == "@in":
        return None if right in _SCALARS else BOOL
    if known and (left != right or left not in _OPERANDS[name]):
        return None
    if left in _SCALARS or left == LIST:
        return left
    return right if right in _SCALARS else UNKNOWN
