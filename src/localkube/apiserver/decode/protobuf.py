"""Kubernetes' protobuf bodies into plain objects: a table-driven decoder.

A body is `k8s\0` and a runtime.Unknown, which names the kind and holds its message. The result is
what the same client would have sent as JSON: Go writes zero values into protobuf that it leaves out
of JSON, so data/protobuf.json says for each field whether its zero means absent. (The codes in that
file are explained in tools/schemas/protobuf.py.)
"""

import base64
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from kubeclient.objects import Obj
from kubeclient.times import FIRST_S, LAST_S, stamp
from localkube.apiserver import data
from localkube.apiserver.decode import json_text
from localkube.apiserver.decode.weight import MAX_VALUES, TooManyValues

MAGIC = b"k8s\0"
_MAX_DEPTH = 100
_VARINT, _FIXED64, _BYTES, _START_GROUP, _END_GROUP, _FIXED32 = range(6)
_SIZES = {_FIXED64: 8, _FIXED32: 4}
# The zero time in Go is the year 1; nothing in Kubernetes is older.
_TIME_RANGE = range(FIRST_S, LAST_S + 1)
# From here on, Go's JSON has numbers as powers of ten.
_FIRST_IN_POWERS = 1e21


class BadProtobuf(ValueError):
    """Says what Go's decoder says."""


class Envelope(NamedTuple):
    api_version: str
    kind: str
    message: bytes


def open_envelope(body: bytes) -> Envelope:
    """Raises BadProtobuf."""
    if not body:
        raise BadProtobuf("empty data")
    if not body.startswith(MAGIC):
        prefix = f"[{' '.join(map(str, MAGIC))}]"
        raise BadProtobuf(
            f"provided data does not appear to be a protobuf message, expected prefix {prefix}"
        )
    if len(body) == len(MAGIC):
        raise BadProtobuf("empty body")
    names: dict[int, str] = {}
    message = b""
    for number, wire, value in _fields(body[len(MAGIC) :]):
        if number == 1 and wire == _BYTES:
            names |= {n: _text(v) for n, w, v in _fields(value) if w == _BYTES}
        elif number == 2 and wire == _BYTES:
            message = value
    return Envelope(names.get(1, ""), names.get(2, ""), message)


def is_known(definition: str) -> bool:
    return definition in _table()


def decode_message(message: bytes, definition: str) -> Obj:
    """`definition`: its name in data/definitions.json. Raises BadProtobuf and TooManyValues."""
    return _message(message, _rows(definition), _Walk())


class _Walk:
    """How deep the decoder is, and how many values it may still make."""

    __slots__ = ("depth", "left")

    def __init__(self) -> None:
        self.depth = 0
        self.left = MAX_VALUES


class _Row(NamedTuple):
    name: str  # empty: the message's fields stand in its parent
    decode: Callable[[Any, "_Row", _Walk], Any]
    wires: tuple[int, ...]
    repeated: bool
    mapped: bool
    drops_zero: bool
    message: str


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    table: dict[str, dict[str, list[str]]] = data.read("protobuf.json")
    return table


@cache
def _rows(definition: str) -> dict[int, _Row]:
    return {int(number): _row(*row) for number, row in _table()[definition].items()}


def _row(name: str, code: str, message: str = "") -> _Row:
    kind = code.rstrip("?")[-1]
    wires = {"i": (_VARINT,), "l": (_VARINT,), "d": (_FIXED64,)}.get(kind, (_BYTES,))
    return _Row(
        name=name,
        decode=_DECODERS[kind],
        wires=(_BYTES,) if code[0] == "{" else wires,
        repeated=code[0] == "[",
        mapped=code[0] == "{",
        drops_zero=code[-1] == "?" or kind in "tu",
        message=message,
    )


def _message(view: bytes, rows: dict[int, _Row], walk: _Walk) -> Obj:
    if walk.depth > _MAX_DEPTH:
        raise BadProtobuf("exceeded max depth")
    walk.depth += 1
    result: Obj = {}
    for number, wire, raw in _fields(view):
        walk.left -= 1
        if walk.left < 0:
            raise TooManyValues
        row = rows.get(number)
        if row is None:
            continue  # a field of a newer version: Go skips it too
        if wire not in row.wires:
            raise BadProtobuf(f"proto: wrong wireType = {wire} for field {row.name}")
        if row.mapped:
            key, value = _entry(raw, row, walk)
            result.setdefault(row.name, {})[key] = value
            continue
        value = row.decode(raw, row, walk)
        if row.repeated:
            result.setdefault(row.name, []).append(value)
        elif not row.name:
            result |= value
        elif value or not row.drops_zero:
            result[row.name] = value
    walk.depth -= 1
    return result


def _entry(raw: bytes, row: _Row, walk: _Walk) -> tuple[str, Any]:
    key, value = "", row.decode(b"", row, walk)
    for number, wire, part in _fields(raw):
        if wire != _BYTES:
            raise BadProtobuf(f"proto: wrong wireType = {wire} for field {row.name}")
        if number == 1:
            key = _text(part)
        elif number == 2:
            value = row.decode(part, row, walk)
    return key, value


def _fields(view: bytes) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value): a whole number for varints, else the bytes."""
    place, end = 0, len(view)
    while place < end:
        tag = view[place]
        place += 1
        if tag >= 0x80:
            tag, place = _varint(view, place - 1)
        number, wire = tag >> 3, tag & 7
        if wire in (_START_GROUP, _END_GROUP):
            raise BadProtobuf("proto: wiretype end group for non-group")
        if wire > _FIXED32:
            raise BadProtobuf(f"proto: illegal wireType {wire}")
        if number == 0:
            raise BadProtobuf(f"proto: illegal tag {number} (wire type {wire})")
        if wire == _VARINT:
            value, place = _varint(view, place)
            yield number, wire, value
            continue
        size, place = _varint(view, place) if wire == _BYTES else (_SIZES[wire], place)
        if place + size > end:
            raise BadProtobuf("unexpected EOF")
        yield number, wire, view[place : place + size]
        place += size


def _varint(view: bytes, place: int) -> tuple[int, int]:
    if place < len(view) and view[place] < 0x80:
        return view[place], place + 1  # nearly always
    result = shift = 0
    while place < len(view):
        byte = view[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & (2**64 - 1), place
        shift += 7
        if shift > 63:
            raise BadProtobuf("proto: integer overflow")
    raise BadProtobuf("unexpected EOF")


def _text(raw: bytes) -> str:
    # Go takes any bytes for text, and shows what is not UTF-8 in the same way.
    return str(raw, "utf-8", "replace")


def _string(raw: bytes, row: _Row, walk: _Walk) -> str:
    return _text(raw)


def _signed(raw: int | bytes, row: _Row, walk: _Walk) -> int:
    if not isinstance(raw, int):
        return 0
    return raw - 2**64 if raw >= 2**63 else raw


def _boolean(raw: int, row: _Row, walk: _Walk) -> bool:
    return bool(raw)


def _double(raw: bytes, row: _Row, walk: _Walk) -> float:
    value: float = struct.unpack("<d", raw)[0] if len(raw) == 8 else 0.0
    if value - value != 0:
        raise BadProtobuf("json: unsupported value")
    # Go writes 10.0 as 10.
    return int(value) if value.is_integer() and abs(value) < _FIRST_IN_POWERS else value


def _base64(raw: bytes, row: _Row, walk: _Walk) -> str:
    return base64.b64encode(raw).decode()


def _nested(raw: bytes, row: _Row, walk: _Walk) -> Obj:
    return _message(raw, _rows(row.message), walk)


def _numbers(raw: bytes) -> dict[int, int]:
    return {
        n: _signed(value, _NO_ROW, _NOWHERE) for n, wire, value in _fields(raw) if wire == _VARINT
    }


def _texts(raw: bytes) -> list[str]:
    return [_text(value) for value in _parts(raw, 1)]


def _quantity(raw: bytes, row: _Row, walk: _Walk) -> str:
    return "".join(_texts(raw)[-1:]) or "0"


def _moment(raw: bytes) -> tuple[str, int] | None:
    """The time to the second, and the nanoseconds in it; None for Go's zero time."""
    numbers = _numbers(raw)
    seconds, nanos = numbers.get(1, 0), numbers.get(2, 0)
    if not raw:
        return None
    if seconds not in _TIME_RANGE or not 0 <= nanos < 10**9:
        raise BadProtobuf("Time.MarshalJSON: year outside of range [0,9999]")
    return stamp(seconds), nanos


def _time(raw: bytes, row: _Row, walk: _Walk) -> str:
    moment = _moment(raw)
    return moment[0] if moment else ""


def _micro_time(raw: bytes, row: _Row, walk: _Walk) -> str:
    moment = _moment(raw)
    return f"{moment[0][:-1]}.{moment[1] // 1000:06}Z" if moment else ""


def _duration(raw: bytes, row: _Row, walk: _Walk) -> str:
    return f"{_numbers(raw).get(1, 0) / 1e9:g}s"


def _int_or_string(raw: bytes, row: _Row, walk: _Walk) -> int | str:
    kind, number, text = 0, 0, ""
    for field, wire, value in _fields(raw):
        if wire == _VARINT and field in (1, 2):
            kind, number = (value, number) if field == 1 else (kind, _signed(value, row, walk))
        elif wire == _BYTES and field == 3:
            text = _text(value)
    return text if kind else number


def _raw_json(raw: bytes, row: _Row, walk: _Walk) -> Any:
    parts = _parts(raw, 1)
    if not parts or not parts[-1]:
        return None
    try:
        return json_text.parse(parts[-1])
    except json_text.BadJson as error:
        raise BadProtobuf(str(error)) from error


def _list_of_text(raw: bytes, row: _Row, walk: _Walk) -> list[str]:
    return _texts(raw)


def _one_or_several(raw: bytes, row: _Row, walk: _Walk) -> list[Obj] | Obj | None:
    several = [_nested(value, row, walk) for value in _parts(raw, 2)]
    return several or _last_message(_parts(raw, 1), row, walk)


def _message_or_boolean(raw: bytes, row: _Row, walk: _Walk) -> Obj | bool:
    found = _last_message(_parts(raw, 2), row, walk)
    return bool(_numbers(raw).get(1, 0)) if found is None else found


def _message_or_texts(raw: bytes, row: _Row, walk: _Walk) -> list[str] | Obj | None:
    texts = [_text(value) for value in _parts(raw, 2)]
    return texts or _last_message(_parts(raw, 1), row, walk)


def _parts(raw: bytes, number: int) -> list[bytes]:
    return [value for n, wire, value in _fields(raw) if n == number and wire == _BYTES]


def _last_message(parts: list[bytes], row: _Row, walk: _Walk) -> Obj | None:
    return _nested(parts[-1], row, walk) if parts else None


_DECODERS: dict[str, Callable[[Any, _Row, _Walk], Any]] = {
    "s": _string,
    "i": _signed,
    "l": _boolean,
    "d": _double,
    "b": _base64,
    "m": _nested,
    "q": _quantity,
    "t": _time,
    "u": _micro_time,
    "p": _duration,
    "n": _int_or_string,
    "r": _raw_json,
    "x": _list_of_text,
    "a": _one_or_several,
    "o": _message_or_boolean,
    "e": _message_or_texts,
}
_NO_ROW = _row("", "i")
_NOWHERE = _Walk()
