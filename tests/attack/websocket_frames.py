"""Frames of WebSockets (RFC 6455), right ones and wrong ones."""

import random

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CODES = (0, 1, 999, 1000, 1001, 1004, 1005, 1006, 1009, 1011, 1015, 2999, 3000, 4999, 5000, 65535)


def frame(
    opcode: int, data: bytes, *, fin: bool = True, reserved: int = 0, mask: bytes | None = b"mask"
) -> bytes:
    first = fin << 7 | reserved << 4 | opcode
    if len(data) < 126:
        length = bytes([len(data) | (mask is not None) << 7])
    elif len(data) < 1 << 16:
        length = bytes([126 | (mask is not None) << 7]) + len(data).to_bytes(2, "big")
    else:
        length = bytes([127 | (mask is not None) << 7]) + len(data).to_bytes(8, "big")
    if mask is None:
        return bytes([first]) + length + data
    hidden = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
    return bytes([first]) + length + mask + hidden


def message(draw: random.Random) -> bytes:
    """What exec, attach and port-forward read: a channel, and what goes to it."""
    channel = draw.choice((0, 0, 0, 1, 2, 3, 4, 5, 255))
    said = draw.choice(
        (
            b"",
            b"echo hello\n",
            b"exit 3\n",
            b"\x00\x50",
            b'{"Width": 80, "Height": 24}',
            b'{"Width": -1, "Height": 99999999999}',
            b"[" * 2000,
            b"{}",
            bytes([draw.randrange(6)]),
            draw.randbytes(50),
            b"x" * 70_000,
        )
    )
    return bytes([channel]) + said


def in_pieces(draw: random.Random) -> bytes:
    data = message(draw)[:200]
    pieces = [data[n : n + 7] for n in range(0, len(data), 7)]
    made = [frame(BINARY if n == 0 else 0, piece, fin=False) for n, piece in enumerate(pieces)]
    return b"".join(made) + frame(0, b"")


def piece_of_nothing(draw: random.Random) -> bytes:
    return frame(0, message(draw)[:100])


def message_in_a_message(draw: random.Random) -> bytes:
    return frame(BINARY, message(draw)[:50], fin=False) + frame(TEXT, b"x")


def unknown(draw: random.Random) -> bytes:
    return frame(draw.choice((3, 4, 5, 6, 7, 11, 12, 13, 14, 15)), message(draw)[:50])


def unmasked(draw: random.Random) -> bytes:
    return frame(BINARY, message(draw), mask=None)


def reserved(draw: random.Random) -> bytes:
    return frame(BINARY, message(draw)[:50], reserved=draw.randrange(1, 8))


def close(draw: random.Random) -> bytes:
    code = draw.choice(_CODES).to_bytes(2, "big")
    return frame(CLOSE, draw.choice((b"", b"x", code, code + b"\xff", code + b"x" * 123)))


def pings(draw: random.Random) -> bytes:
    flood = frame(PING, b"x" * draw.choice((0, 125))) * draw.choice((1, 500))
    return draw.choice((flood, frame(PING, b"x" * 126), frame(PING, b"x", fin=False)))


def text(draw: random.Random) -> bytes:
    return frame(TEXT, draw.choice((b"\xff\xfe", b"\xed\xa0\x80", b"text", b"")))


def wrong_length(draw: random.Random) -> bytes:
    """Longer than it is allowed to be, or than there is; or short in the form of a long one."""
    if draw.random() < 0.3:
        return b"\x82\xfe" + (5).to_bytes(2, "big") + b"mask" + b"hello"
    size = draw.choice((2**63 - 1, 2**63, 2**64 - 1, 17 << 20, 1 << 20))
    return b"\x82\xff" + size.to_bytes(8, "big") + b"mask" + message(draw)[:1000]


def cut_off(draw: random.Random) -> bytes:
    whole = right(draw)
    return whole[: draw.randrange(1, len(whole) + 1)]


def right(draw: random.Random) -> bytes:
    return frame(BINARY, message(draw))


ATTEMPTS = (
    *(in_pieces, piece_of_nothing, message_in_a_message, unknown, unmasked, reserved, close, pings),
    *(text, wrong_length, cut_off, right, right, right),
)


def attempt(draw: random.Random) -> bytes:
    """One frame, or several that belong together."""
    return draw.choice(ATTEMPTS)(draw)
