"""Reading logs back: from a time on, the last lines, up to a number of bytes, and following.

The files are those of log_file.py, oldest first; their lines are in the order of time.
"""

import mmap
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from os.path import samestat
from pathlib import Path
from typing import BinaryIO

from localkube.kubelet.log_file import log_paths, nano_stamp
from localkube.node_streams import LogOptions

_STAMP = 30  # characters of a time
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Log:
    path: Path
    files: int
    # Waits until there may be more; False when there will be none.
    more: Callable[[], Awaitable[bool]]


async def read_log(log: Log, options: LogOptions, now_ns: int) -> AsyncIterator[bytes]:
    since = _since(options, now_ns)
    left = options.limit_bytes
    async for lines in _pieces(log, options, since):
        out = b"".join(_shown(line, timestamps=options.timestamps) for line in lines)
        if left is not None:
            out = out[:left]
            left -= len(out)
        if out:
            yield out
        if left == 0:
            return


def _since(options: LogOptions, now_ns: int) -> bytes:
    if options.since_seconds is not None:
        return nano_stamp(max(0, now_ns - options.since_seconds * 10**9))
    if options.since_time is not None:
        return nano_stamp(int(options.since_time.timestamp() * 10**6) * 1000)
    return b""


def _shown(line: bytes, *, timestamps: bool) -> bytes:
    """`line` has no end. A piece of a line stays one."""
    stamp, _, rest = line.partition(b" ")
    _, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    end = b"\n" if tag == b"F" else b""
    return b"%s %s%s" % (stamp, text, end) if timestamps else text + end


async def _pieces(log: Log, options: LogOptions, since: bytes) -> AsyncIterator[list[bytes]]:
    """Lines, some at a time, from where the options want to begin."""
    with ExitStack() as stack:
        opened: list[BinaryIO] = [
            stack.enter_context(path.open("rb"))
            for path in log_paths(log.path, log.files)
            if path.exists()
        ]
        _seek(opened, options.tail_lines, since)
        rest = b""
        for file in opened:
            for chunk in _chunks(file):
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines
        if options.follow and opened:
            async for lines in _followed(log, opened[-1], rest, stack):
                yield lines


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


async def _followed(
    log: Log, file: BinaryIO, rest: bytes, stack: ExitStack
) -> AsyncIterator[list[bytes]]:
    going_on = True
    while going_on:
        going_on = await log.more()
        for chunk in _chunks(file):
            *lines, rest = (rest + chunk).split(b"\n")
            yield lines
        if not samestat(os.fstat(file.fileno()), os.stat(log.path)):  # moved aside meanwhile
            file = stack.enter_context(log.path.open("rb"))
            for chunk in _chunks(file):
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines


def _seek(opened: list[BinaryIO], tail: int | None, since: bytes) -> None:
    """Moves every file to the first line that is wanted of it."""
    wanted = tail
    for file in reversed(opened):
        size = file.seek(0, 2)
        start = 0
        if size == 0:
            continue
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
            if since:
                start = _first_since(content, since)
            if wanted is not None:
                from_end, taken = _last_lines(content, wanted)
                start = max(start, from_end)
                wanted -= taken
        file.seek(start)


def _first_since(content: mmap.mmap, since: bytes) -> int:
    """Where the first line of that time or later begins."""
    low, high = 0, len(content)
    while low < high:
        middle = content.rfind(b"\n", 0, (low + high) // 2) + 1
        middle = max(middle, low)
        if content[middle : middle + _STAMP] < since:
            end = content.find(b"\n", middle)
            low = len(content) if end < 0 else end + 1
        else:
            high = middle
    return low


def _last_lines(content: mmap.mmap, wanted: int) -> tuple[int, int]:
    """Where the last `wanted` lines begin, and how many there are."""
    position, taken = len(content), 0
    while taken < wanted and position > 0:
        position = content.rfind(b"\n", 0, position - 1) + 1
        taken += 1
    return position, taken
