"""Is the write-ahead log whole? SQLite itself does not say.

SQLite takes the first frame that does not add up for the end of the log: right after a power cut,
where that is a transaction nobody was told about; wrong for a file that was damaged later, where
everything behind the frame was acknowledged. The two can be told apart: transactions are flushed
one by one, so behind the torn one there cannot be the ends of two more.

    header   32 bytes: magic, format, page size, sequence, 2 salts, 2 checksums   (big-endian)
    frame    24 bytes: page, size of the database after a commit or 0, 2 salts, 2 checksums;
             then the page. Frames with other salts are left over from before the last reset.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # the byte order that checksums are counted in
_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_WORD = 0xFFFFFFFF

Sums = tuple[int, int]


def damage(path: Path) -> str | None:
    """What is wrong with the log at `path`; None if it is whole, torn at its end, or not there."""
    try:
        with path.open("rb") as file:
            return _damage(file)
    except FileNotFoundError:
        return None


def _damage(file: BinaryIO) -> str | None:
    raw = file.read(_HEADER.size)
    if len(raw) < _HEADER.size:
        return None  # nothing was ever in it
    magic, _, page_bytes, _, *salts, sum_1, sum_2 = _HEADER.unpack(raw)
    order = _MAGIC.get(magic)
    if order is None or _summed(raw[:24], (0, 0), order) != (sum_1, sum_2):
        return "its header is garbled"
    sums: Sums = (sum_1, sum_2)
    frames = _frames(file, page_bytes)
    for number, (head, page) in enumerate(frames):
        _, _, *frame_salts, sum_1, sum_2 = _FRAME.unpack(head)
        if frame_salts != salts:
            return None  # left over from before
        # The sums of a frame continue those of the frame before. Of the head, SQLite sums only the
        # page number and the size, not the salts.
        sums = _summed(page, _summed(head[:8], sums, order), order)
        if sums != (sum_1, sum_2):
            return _behind(number, frames, salts, is_end=head[4:8] != bytes(4))
    return None


def _behind(
    number: int, frames: Iterator[tuple[bytes, bytes]], salts: list[int], *, is_end: bool
) -> str | None:
    """Whether the frame that does not add up can be the last transaction's."""
    ends = int(is_end)
    for head, _ in frames:
        _, size, *frame_salts, _, _ = _FRAME.unpack(head)
        ends += frame_salts == salts and size > 0
    return f"frame {number} is garbled, with {ends} commits behind it" if ends > 1 else None


def _frames(file: BinaryIO, page_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    while len(raw := file.read(_FRAME.size + page_bytes)) == _FRAME.size + page_bytes:
        yield raw[: _FRAME.size], raw[_FRAME.size :]


def _summed(data: bytes, sums: Sums, order: str) -> Sums:
    """SQLite's own checksum: two sums that run over pairs of words."""
    first, second = sums
    for one, other in struct.iter_unpack(order + "2I", data):
        first = (first + one + second) & _WORD
        second = (second + other + first) & _WORD
    return first, second
