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


def attempt(draw: random.Random) -> bytes:
    """One frame, or several that belong together."""
    data = message(draw)
    match draw.randrange(16):
        case 0:  # in pieces
            pieces = [data[n : n + 7] for n in range(0, min(len(data), 200), 7)] or [b""]
            made = [frame(BINARY if n == 0 else 0, p, fin=False) for n, p in enumerate(pieces)]
            return b"".join(made) + frame(0, b"")
        case 1:  # a piece of nothing
            return frame(0, data[:100])
        case 2:  # another message inside of a message
            return frame(BINARY, data[:50], fin=False) + frame(TEXT, b"x")
        case 3:
            return frame(draw.choice((3, 4, 5, 6, 7, 11, 12, 13, 14, 15)), data[:50])
        case 4:
            return frame(BINARY, data, mask=None)
        case 5:
            return frame(BINARY, data[:50], reserved=draw.randrange(1, 8))
        case 6:
            code = draw.choice(_CODES).to_bytes(2, "big")
            return frame(CLOSE, draw.choice((b"", b"x", code, code + b"\xff", code + b"x" * 123)))
        case 7:
            return frame(PING, b"x" * draw.choice((0, 125))) * draw.choice((1, 500))
        case 8:
            return frame(PING, b"x" * 126) + frame(PONG, b"x" * 5000)
        case 9:
            return frame(PING, b"x", fin=False)
        case 10:
            return frame(TEXT, draw.choice((b"\xff\xfe", b"\xed\xa0\x80", b"text", b"")))
        case 11:  # longer than it is allowed to be, or than there is
            size = draw.choice((2**63 - 1, 2**63, 2**64 - 1, 17 << 20, 1 << 20))
            return b"\x82\xff" + size.to_bytes(8, "big") + b"mask" + data[:1000]
        case 12:  # a short length in a long form
            return b"\x82\xfe" + (5).to_bytes(2, "big") + b"mask" + b"hello"
        case 13:
            whole = frame(BINARY, data)
            return whole[: draw.randrange(1, len(whole) + 1)]
        case _:
            return frame(BINARY, data)
