"""Protobuf messages as trees of fields, and ways to spoil them: lengths, wire types, nesting."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
_MAX_DEPTH = 12


@dataclass
class Field:
    number: int
    wire: int
    raw: bytes = b""  # of a number, or of bytes that are no message
    inner: list["Field"] | None = None  # of bytes that may be a message
    lies: int = 0  # added to the length that is announced

    def encoded(self) -> bytes:
        body = self.raw if self.inner is None else encode(self.inner)
        head = varint(self.number << 3 | self.wire)
        if self.wire == BYTES:
            head += varint(max(0, len(body) + self.lies))
        return head + body


def varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def encode(fields: list[Field]) -> bytes:
    return b"".join(each.encoded() for each in fields)


def parse(raw: bytes, depth: int = 0) -> list[Field] | None:
    """None: these bytes are no message."""
    found, place = [], 0
    try:
        while place < len(raw):
            tag, place = _varint(raw, place)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 1000:
                return None
            end = place
            if wire == VARINT:
                _, end = _varint(raw, place)
            elif wire == BYTES:
                size, place = _varint(raw, place)
                end = place + size
            elif wire in (FIXED64, FIXED32):
                end = place + (8 if wire == FIXED64 else 4)
            else:
                return None
            if end > len(raw):
                return None
            body = raw[place:end]
            inner = parse(body, depth + 1) if wire == BYTES and depth < _MAX_DEPTH else None
            found.append(Field(number, wire, body, inner or None))
            place = end
    except IndexError:
        return None
    return found


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = raw[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7


@dataclass
class _Spot:
    """One field, and the list that it is in."""

    holder: list[Field]
    index: int

    @property
    def it(self) -> Field:
        return self.holder[self.index]


def spots(fields: list[Field]) -> list[_Spot]:
    found = []
    for index, each in enumerate(fields):
        found.append(_Spot(fields, index))
        if each.inner is not None:
            found += spots(each.inner)
    return found


NUMBERS = (0, 1, 127, 128, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
ENDLESS = (b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\xff" * 11, b"\x80" * 200, b"\x80" * 10 + b"\x01")


def _another_number(spot: _Spot, draw: random.Random) -> None:
    spot.it.raw = varint(draw.choice(NUMBERS)) if draw.random() < 0.7 else draw.choice(ENDLESS)
    spot.it.wire, spot.it.inner = VARINT, None


def _another_wire(spot: _Spot, draw: random.Random) -> None:
    spot.it.wire = draw.randrange(8)


def _another_field(spot: _Spot, draw: random.Random) -> None:
    spot.it.number = draw.choice((0, 1, 2, 3, 4, 5, 7, 15, 16, 100, 18999, 2**29 - 1, 2**29, 2**60))


def _lie(spot: _Spot, draw: random.Random) -> None:
    spot.it.wire = BYTES
    spot.it.lies = draw.choice((-1, 1, 2, -100, 1000, 2**31, 2**32, 2**63, 2**64))


def _other_bytes(spot: _Spot, draw: random.Random) -> None:
    spot.it.inner = None
    spot.it.raw = draw.choice(
        (b"", b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b"x" * 5000, draw.randbytes(20))
    )


def _repeat(spot: _Spot, draw: random.Random) -> None:
    spot.holder[spot.index : spot.index] = [spot.it] * draw.choice((1, 2, 500))


def _remove(spot: _Spot, _draw: random.Random) -> None:
    del spot.holder[spot.index]


def _nest(spot: _Spot, draw: random.Random) -> None:
    """In itself, many times."""
    raw = spot.it.encoded()
    for _ in range(draw.choice((1, 5, 99, 101, 3000))):
        raw = Field(spot.it.number, BYTES, raw).encoded()
    spot.it.wire, spot.it.raw, spot.it.inner = BYTES, raw, None


def _group(spot: _Spot, draw: random.Random) -> None:
    """Groups are history; a decoder has to skip them, however deep."""
    depth = draw.choice((1, 3, 200, 20_000))
    number = draw.choice((spot.it.number, 999))
    ends = draw.choice((depth, depth - 1, depth + 1, 0))
    opened = varint(number << 3 | START_GROUP) * depth + varint(number << 3 | END_GROUP) * ends
    spot.holder.insert(spot.index, Field(998, BYTES, b""))
    spot.holder.insert(spot.index, _Literal(998, BYTES, opened))


@dataclass
class _Literal(Field):
    """Bytes that are no field."""

    numbers: list[int] = field(default_factory=list)

    def encoded(self) -> bytes:
        return self.raw


def _swap(spot: _Spot, draw: random.Random) -> None:
    """One part of the message in the place of another."""
    if spot.it.inner:
        spot.it.inner = draw.choice([s.it for s in spots(spot.it.inner)]).inner or spot.it.inner


CHANGES: tuple[Callable[[_Spot, random.Random], None], ...] = (
    *(_another_number, _another_wire, _another_field, _lie, _other_bytes),
    *(_repeat, _remove, _nest, _group, _swap),
)


def spoiled(raw: bytes, draw: random.Random) -> bytes:
    """A copy of the message with one to three mistakes."""
    fields = parse(raw) or []
    for _ in range(draw.choice((1, 1, 2, 3))):
        found = spots(fields)
        if not found:
            break
        draw.choice(CHANGES)(draw.choice(found), draw)
    made = encode(fields)
    if draw.random() < 0.1:
        made = made[: draw.randrange(len(made) + 1)]
    return made[: 2 << 20]
