"""Messages <-> protobuf, for classes whose n-th attribute is field n, unless `number` says another.

It supports what these APIs use: text, bytes, bool, whole numbers, messages, sequences of them, and
maps of text. As in protobuf, unknown fields are skipped and zero values are not written; tests
compare with the protobuf library. That library is not used because its generated code works with
one or two of its major versions only, and users have others installed in the same environment.

A node lists thousands of devices, and hundreds of nodes may share a process. So the code for each
field is chosen once for each class, not for each message.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field as Attribute
from dataclasses import fields
from functools import cache
from itertools import islice
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

Message = TypeVar("Message")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MASK64 = (1 << 64) - 1
_SIGN64 = 1 << 63
_MAX_DEPTH = 16  # of messages within messages
_NUMBER = "number"  # in the metadata of an attribute


def number(number: int) -> Mapping[str, int]:
    """As the metadata of an attribute: the number of its field. The next attribute has the next
    one, unless it says otherwise, too."""
    return {_NUMBER: number}


class BadMessage(ValueError):
    """The bytes are not a message of this type; the text says where."""


class _Field(NamedTuple):
    name: str
    tag: bytes
    wire: int
    content: Callable[[Any], bytes]  # encodes one element, with its length before it
    value: Callable[[Any, int], Any]  # decodes one element; the number is its depth of nesting
    zero: Any
    is_sequence: bool = False
    is_map: bool = False
    is_packed: bool = False


def encode(message: Any) -> bytes:
    kind: Any = type(message)
    out: list[bytes] = []
    for row in _rows(kind).values():
        value = getattr(message, row.name)
        if row.is_packed:
            if value:
                out += row.tag, _sized(b"".join(map(row.content, value)))
        elif row.is_sequence:
            for element in value:
                out += row.tag, row.content(element)
        elif row.is_map:
            # Sorted, so that equal messages have equal bytes.
            for entry in sorted(value.items()):
                out += row.tag, row.content(entry)
        elif value != row.zero:
            out += row.tag, row.content(value)
    return b"".join(out)


def decode(kind: type[Message], raw: bytes) -> Message:
    """Raises BadMessage."""
    message: Message = _decode(kind, raw, 0)
    return message


def has_more_fields(raw: bytes, most: int) -> bool:
    """Without what is in them. Raises BadMessage."""
    return next(islice(_parts(raw), most, None), None) is not None


def _decode(kind: Any, raw: bytes, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise BadMessage(f"messages within messages, more than {_MAX_DEPTH} deep")
    rows = _rows(kind)
    found: dict[str, Any] = {}
    for number, wire, value in _parts(raw):
        row = rows.get(number)
        if row is None:
            continue
        # protobuf requires readers to accept both forms of repeated numbers: packed, and one field
        # each.
        if row.is_packed and wire == _BYTES:
            found.setdefault(row.name, []).extend(row.value(n, depth) for n in _varints(value))
        elif wire != row.wire:
            raise BadMessage(f"{kind.__name__}.{row.name}: wire type {wire}, wanted {row.wire}")
        elif row.is_sequence:
            found.setdefault(row.name, []).append(row.value(value, depth))
        elif row.is_map:
            found.setdefault(row.name, {}).update((row.value(value, depth),))
        else:
            # A field that comes twice: the last one counts, as in protobuf.
            found[row.name] = row.value(value, depth)
    for row in rows.values():
        if row.is_sequence and row.name in found:
            found[row.name] = tuple(found[row.name])
    return kind(**found)


@cache
def _rows(kind: Any) -> dict[int, _Field]:
    """By number."""
    hints = get_type_hints(kind)
    return {
        number: _row(attribute.name, number, hints[attribute.name])
        for number, attribute in _numbered(fields(kind))
    }


def _numbered(attributes: Iterable[Attribute[Any]]) -> Iterator[tuple[int, Attribute[Any]]]:
    last = 0
    for attribute in attributes:
        last = attribute.metadata.get(_NUMBER, last + 1)
        yield last, attribute


def _row(name: str, number: int, hint: Any) -> _Field:
    if get_origin(hint) is tuple:
        one = _row(name, number, get_args(hint)[0])
        if one.wire == _VARINT:
            return one._replace(tag=_tag(number, _BYTES), is_sequence=True, is_packed=True)
        return one._replace(is_sequence=True)
    if get_origin(hint) is Mapping:
        tag = _tag(number, _BYTES)
        return _Field(name, tag, _BYTES, _entry, _entry_of, {}, is_map=True)
    if get_origin(hint) is UnionType:  # a message or None
        hint = get_args(hint)[0]
    if hint is str:
        return _Field(name, _tag(number, _BYTES), _BYTES, _text, _text_of, "")
    if hint is bytes:
        return _Field(name, _tag(number, _BYTES), _BYTES, _sized, lambda raw, depth: raw, b"")
    if hint is bool:
        tag = _tag(number, _VARINT)
        return _Field(name, tag, _VARINT, _varint, lambda n, depth: bool(n), False)
    if hint is int:
        return _Field(name, _tag(number, _VARINT), _VARINT, _varint, _signed, 0)
    return _Field(
        name,
        _tag(number, _BYTES),
        _BYTES,
        lambda message: _sized(encode(message)),
        lambda raw, depth: _decode(hint, raw, depth + 1),
        None,
    )


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _sized(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _text_of(raw: bytes, depth: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadMessage(f"text that is not UTF-8: {error.reason}") from error


def _entry(pair: tuple[str, str]) -> bytes:
    """One entry of a map: a message with key and value."""
    key, value = pair
    return _sized(_tag(1, _BYTES) + _text(key) + _tag(2, _BYTES) + _text(value))


def _entry_of(raw: bytes, depth: int) -> tuple[str, str]:
    texts = {n: _text_of(value, depth) for n, wire, value in _parts(raw) if wire == _BYTES}
    return texts.get(1, ""), texts.get(2, "")


def _signed(number: int, depth: int) -> int:
    # protobuf sends negative numbers as 64 bits in two's complement, also those of 32 bits.
    return number - (1 << 64) if number & _SIGN64 else number


def _varint(number: int) -> bytes:
    if 0 <= number < 128:
        return _BYTE[number]
    rest = number & _MASK64
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_BYTE = tuple(bytes((number,)) for number in range(128))


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
    at, end = 0, len(raw)
    while at < end:
        tag, at = (raw[at], at + 1) if raw[at] < 128 else _read_varint(raw, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _read_varint(raw, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            is_short = at < end and raw[at] < 128
            size, at = (raw[at], at + 1) if is_short else _read_varint(raw, at)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise BadMessage(f"wire type {wire}")
        if size > end - at:
            raise BadMessage(f"the message ends within field {number}")
        yield number, wire, raw[at : at + size]
        at += size
