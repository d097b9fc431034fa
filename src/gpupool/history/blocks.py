"""Block: the figures of up to 256 series in one slot, as a row of the store has them. Pure.

Most figures are small, and neighbours are alike. The bytes of all figures are sorted by their
weight before they are compressed: the upper ones are nearly all 0, and take nearly no room.
"""

import zlib

import numpy as np

from gpupool.history.samples import FIELDS, Figures

SERIES = 256  # of one block
_SIZE = SERIES * FIELDS * 8
_LEVEL = 1  # of zlib: higher ones take four times as long, and save a tenth


def block_bytes(figures: Figures) -> bytes:
    """`figures`: exactly those of one block."""
    assert figures.shape == (SERIES, FIELDS)
    columns = np.ascontiguousarray(figures.T, dtype="<i8")
    by_weight = columns.view(np.uint8).reshape(-1, 8).T
    return zlib.compress(np.ascontiguousarray(by_weight).tobytes(), _LEVEL)


def block_figures(data: bytes) -> Figures:
    """Raises ValueError if the bytes are no block."""
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(data, _SIZE + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(raw) != _SIZE:
        raise ValueError(f"a block has {_SIZE} bytes, not {len(raw)}")
    by_weight = np.frombuffer(raw, np.uint8).reshape(8, -1)
    columns = np.ascontiguousarray(by_weight.T).view("<i8").reshape(FIELDS, SERIES)
    return np.ascontiguousarray(columns.T, dtype=np.int64)
