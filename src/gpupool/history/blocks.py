"""Block: the figures of up to 256 series in one slot, as a row of the store has them. Pure.

Most figures are small, and neighbours are alike. The bytes of all figures are sorted by their
weight before they are compressed: the upper ones are nearly all 0, and take nearly no room.
"""

import zlib

import numpy as np

from gpupool.history.samples import FIELDS, PEAK, Figures, Sample

SERIES = 256  # of one block
_SIZE = SERIES * FIELDS * 8
_OLD_FIELDS = FIELDS - 2  # of version 1: without `known` and `within`
_OLD_SIZE = SERIES * _OLD_FIELDS * 8
_GIVEN, _TOLD, _USED, _IDLE, _KNOWN, _WITHIN = map(
    Sample._fields.index, ("given", "told", "used", "idle", "known", "within")
)
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
    if len(raw) not in (_SIZE, _OLD_SIZE):
        raise ValueError(f"a block has {_SIZE} bytes, not {len(raw)}")
    by_weight = np.frombuffer(raw, np.uint8).reshape(8, -1)
    columns = np.ascontiguousarray(by_weight.T).view("<i8").reshape(-1, SERIES)
    figures = np.ascontiguousarray(columns.T, dtype=np.int64)
    return figures if len(raw) == _SIZE else _of_version_1(figures)


def _of_version_1(old: Figures) -> Figures:
    """What it did not have is taken from sums, so it is right where nobody used more than his part
    (of cards: where all of the time was told)."""
    figures = np.zeros((SERIES, FIELDS), np.int64)
    figures[:, : _OLD_FIELDS - 1] = old[:, :-1]
    figures[:, PEAK] = old[:, -1]
    figures[:, _KNOWN] = np.minimum(figures[:, _TOLD], figures[:, _GIVEN])
    not_idle = np.maximum(figures[:, _KNOWN] - figures[:, _IDLE], 0)
    figures[:, _WITHIN] = np.minimum(figures[:, _USED], not_idle)
    return figures
