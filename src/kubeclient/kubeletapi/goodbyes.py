"""Finds the frames in which an HTTP/2 server says that it takes no more calls. Pure.

Servers in Go end so: first this frame (GOAWAY without an error), then the answers to calls in
progress. h2 takes nothing after it. So the client cuts what arrives into frames, gives h2 only the
others, and keeps this one for itself.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEAD_BYTES = 9
_LONGEST = 16 * 1024  # h2 refuses longer frames by their heads; so the rest is not waited for
_GOAWAY = 7
_GOODBYE = struct.Struct(">II")  # the last call that is answered, and the error


class Goodbye(NamedTuple):
    last: int  # calls with a higher number are not answered


class Frames:
    """Cuts what arrives into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, data: bytes) -> Iterator[bytes | Goodbye]:
        """Those that are complete now."""
        self._rest += data
        while len(self._rest) >= _HEAD_BYTES:
            size = int.from_bytes(self._rest[:3])
            end = _HEAD_BYTES + (size if size <= _LONGEST else 0)
            if len(self._rest) < end:
                return
            frame = bytes(self._rest[:end])
            del self._rest[:end]
            yield _goodbye(frame) or frame


def _goodbye(frame: bytes) -> Goodbye | None:
    if frame[3] != _GOAWAY or len(frame) < _HEAD_BYTES + _GOODBYE.size:
        return None
    last, error = _GOODBYE.unpack_from(frame, _HEAD_BYTES)
    return Goodbye(last & 0x7FFF_FFFF) if error == 0 else None
