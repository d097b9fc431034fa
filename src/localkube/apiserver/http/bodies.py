"""Bodies of answers: small ones whole, large ones in slices, streams in chunks."""

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import accumulate

# Answers up to here go out in one write; larger ones in slices, as fast as the client reads, so
# that neither they nor copies of them pile up, and others are served in between.
SLICE = 256 * 1024


def length(body: bytes | Sequence[bytes]) -> int:
    return len(body) if isinstance(body, bytes) else sum(map(len, body))


def whole(body: bytes | Sequence[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b"".join(body)


def slices(body: bytes | Sequence[bytes]) -> Iterator[bytes | memoryview]:
    if isinstance(body, bytes):
        view = memoryview(body)
        for start in range(0, len(body), SLICE):
            yield view[start : start + SLICE]
        return
    ends = list(accumulate(map(len, body)))
    start = reached = 0
    while start < len(body):
        stop = bisect_left(ends, reached + SLICE) + 1
        yield b"".join(body[start:stop])
        start, reached = stop, ends[min(stop, len(body)) - 1]


def chunk(data: bytes) -> bytes:
    """One chunk of the chunked transfer coding; the empty one ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def as_is(data: bytes) -> bytes:
    return data


async def end(chunks: AsyncIterator[bytes]) -> None:
    """Run the clean-up of a generator now, not when it is collected."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
