"""Messages <-> protobuf, for classes whose n-th attribute is field n.

It knows what these APIs use: text, bool, whole numbers, other messages, sequences of them, and
maps of text. Unknown fields are skipped, zero values are not written, both as protobuf has it; the
tests compare with the protobuf library. Why not that library: its generated code fits one or two
of its major versions, and people have others installed beside us.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

Message = TypeVar("Message")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MASK64 = (1 << 64) - 1
_SIGN64 = 1 << 63


class BadMessage(ValueError):
    """Not a message of this kind; the text says where it went wrong."""


class _Field(NamedTuple):
    name: str
    number: int
    wire: int
    encode: Callable[[Any], bytes]  # one element
    decode: Callable[[Any], Any]
    zero: Any
    is_sequence: bool = False
    is_map: bool = False
    is_packed: bool = False


def encode(message: Any) -> bytes:
    kind: Any = type(message)
    return b"".join(
        part for row in _rows(kind) for part in _encoded(row, getattr(message, row.name))
    )


def decode(kind: type[Message], raw: bytes) -> Message:
    """Raises BadMessage."""
    hashable: Any = kind
    rows = _rows_by_number(hashable)
    found: dict[str, Any] = {}
    for number, wire, value in _parts(raw):
        row = rows.get(number)
        if row is None:
            continue
        if row.is_packed and wire == _BYTES:
            found.setdefault(row.name, []).extend(row.decode(n) for n in _varints(value))
        elif wire != row.wire:
            raise BadMessage(f"{kind.__name__}.{row.name}: wire type {wire}, wanted {row.wire}")
        elif row.is_map:
            key, text = row.decode(value)
            found.setdefault(row.name, {})[key] = text
        elif row.is_sequence:
            found.setdefault(row.name, []).append(row.decode(value))
        else:
            found[row.name] = row.decode(value)
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}
    return kind(**values)


def _encoded(row: _Field, value: Any) -> Iterator[bytes]:
    if row.is_map:
        elements: list[Any] = sorted(value.items())
    elif row.is_sequence:
        elements = list(value)
    else:
        elements = [] if value == row.zero else [value]
    if row.is_packed and elements:
        yield _tagged(row.number, _BYTES, b"".join(map(row.encode, elements)))
    else:
        for element in elements:
            yield _tagged(row.number, row.wire, row.encode(element))


def _tagged(number: int, wire: int, content: bytes) -> bytes:
    tag = _varint(number << 3 | wire)
    return tag + content if wire == _VARINT else tag + _varint(len(content)) + content


@cache
def _rows(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    return tuple(
        _row(row.name, number, hints[row.name]) for number, row in enumerate(fields(kind), start=1)
    )


@cache
def _rows_by_number(kind: Any) -> dict[int, _Field]:
    return {row.number: row for row in _rows(kind)}


def _row(name: str, number: int, hint: Any) -> _Field:
    if get_origin(hint) is tuple:
        one = _row(name, number, get_args(hint)[0])
        return one._replace(is_sequence=True, is_packed=one.wire == _VARINT)
    if get_origin(hint) is Mapping:
        return _Field(name, number, _BYTES, _entry, _entry_of, {}, is_map=True)
    if get_origin(hint) is UnionType:  # a message or None
        hint = get_args(hint)[0]
    if hint is str:
        return _Field(name, number, _BYTES, str.encode, _text, "")
    if hint is bool:
        return _Field(name, number, _VARINT, _varint, bool, False)
    if hint is int:
        return _Field(name, number, _VARINT, _varint, _signed, 0)
    return _Field(name, number, _BYTES, encode, lambda raw: decode(hint, raw), None)


class _Entry(NamedTuple):
    key: str
    value: str


def _entry(pair: tuple[str, str]) -> bytes:
    return b"".join(_tagged(n, _BYTES, text.encode()) for n, text in enumerate(pair, start=1))


def _entry_of(raw: bytes) -> _Entry:
    texts = {n: _text(value) for n, wire, value in _parts(raw) if wire == _BYTES}
    return _Entry(texts.get(1, ""), texts.get(2, ""))


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadMessage(f"text that is not UTF-8: {error.reason}") from error


def _signed(number: int) -> int:
    return number - (1 << 64) if number & _SIGN64 else number


def _varint(number: int) -> bytes:
    rest = number & _MASK64
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(raw):
            raise BadMessage("the message ends within a number")
        byte = raw[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _MASK64, at
    raise BadMessage("a number of more than 64 bits")


def _varints(raw: bytes) -> Iterator[int]:
    at = 0
    while at < len(raw):
        number, at = _read_varint(raw, at)
        yield number


def _parts(raw: bytes) -> Iterator[tuple[int, int, Any]]:
    """Field number, wire type and content of each field."""
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _read_varint(raw, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _read_varint(raw, at)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise BadMessage(f"wire type {wire}")
        if size > len(raw) - at:
            raise BadMessage(f"the message ends within field {number}")
        yield number, wire, raw[at : at + size]
        at += size
