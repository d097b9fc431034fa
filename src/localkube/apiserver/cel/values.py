"""Values of CEL that Python has no type for, and what equal, less and the type of a value mean."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from kubeclient.quantity import Quantity
from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.times import Moment, Span

_PIECE = 10  # characters that cost as much as one step

Charge: TypeAlias = Callable[[int], None]


class Uint(int):
    pass


@dataclass(frozen=True, slots=True)
class Optional:
    """`values` has one value, or none."""

    values: tuple[Any, ...] = ()

    NONE: ClassVar["Optional"]


Optional.NONE = Optional()


class MixedKeys(Mapping[Any, Any]):
    """A map with booleans among its keys: true and 1 are two of them, as they are not in Python."""

    def __init__(self, entries: Mapping[Any, Any] = MappingProxyType({})) -> None:
        self._entries = {(type(key) is bool, key): value for key, value in entries.items()}

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries[type(key) is bool, key] = value

    def __getitem__(self, key: Any) -> Any:
        return self._entries[type(key) is bool, key]

    def __iter__(self) -> Iterator[Any]:
        return (key for _, key in self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def with_entry(
    entries: dict[Any, Any] | MixedKeys, key: Any, value: Any
) -> dict[Any, Any] | MixedKeys:
    """Changes `entries` in place, unless it has to become one of mixed keys."""
    if type(key) is bool and isinstance(entries, dict):
        entries = MixedKeys(entries)
    entries[key] = value
    return entries


@dataclass(frozen=True, slots=True)
class TypeValue:
    name: str


class Opaque:
    """A value with functions of its own and nothing else: an authorizer, for example."""

    __slots__ = ()
    type_name = "opaque"


_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    Moment: "google.protobuf.Timestamp",
    Span: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
}
_NUMBERS = (int, Uint, float)
_ORDERED = (str, bytes, bool, Moment, Span)


def type_name(value: Any) -> str:
    if isinstance(value, Mapping):
        return "map"
    if isinstance(value, Opaque):
        return value.type_name
    return _TYPES.get(type(value), "dyn")


def pieces(length: int) -> int:
    """What it costs to go through so many characters."""
    return -(-length // _PIECE)


def is_number(value: Any) -> bool:
    return type(value) in _NUMBERS


def equal(left: Any, right: Any, charge: Charge) -> bool:
    """True and 1 are not equal here, as they are in Python."""
    if isinstance(left, str | bytes) and type(left) is type(right):
        charge(pieces(min(len(left), len(right))))
        return left == right
    if isinstance(left, list) and isinstance(right, list):
        charge(1)
        return len(left) == len(right) and all(
            equal(one, other, charge) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        charge(1)
        return len(left) == len(right) and all(
            key in right and equal(value, right[key], charge) for key, value in left.items()
        )
    charge(1)
    if isinstance(left, Optional) and isinstance(right, Optional):
        return equal(list(left.values), list(right.values), charge)
    if is_number(left) and is_number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def less(left: Any, right: Any, charge: Charge) -> bool:
    if is_number(left) and is_number(right):
        return bool(left < right)
    if type(left) is not type(right) or not isinstance(left, _ORDERED):
        raise no_such_overload()
    if isinstance(left, str | bytes):
        charge(pieces(min(len(left), len(right))))
    return bool(left < right)


def contains(container: Any, wanted: Any, charge: Charge) -> bool:
    if isinstance(container, Mapping):
        return not isinstance(wanted, Mapping | list) and has_key(container, wanted)
    if isinstance(container, list):
        charge(len(container))
        return any(equal(item, wanted, charge) for item in container)
    raise no_such_overload()


def has_key(container: Mapping[Any, Any], wanted: Any) -> bool:
    if type(wanted) is bool and not isinstance(container, MixedKeys):
        return False  # which Python would take for 0 or 1
    try:
        return wanted in container
    except TypeError:  # cannot be a key
        return False


def looked_up(container: Any, key: Any) -> Any:
    """container[key]"""
    if isinstance(container, Mapping):
        if not isinstance(key, str) and not has_key(container, key):
            raise EvaluationError(f"no such key: {shown(key)}")
        try:
            return container[key]
        except KeyError:
            raise EvaluationError(f"no such key: {shown(key)}") from None
    if isinstance(container, list):
        # Neither infinity nor a number that is none is whole.
        if not is_number(key) or (isinstance(key, float) and not key.is_integer()):
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        if not 0 <= key < len(container):
            raise EvaluationError(f"index out of bounds: {int(key)}")
        return container[int(key)]
    raise no_such_overload()


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
