"""Reads the log of one run of a container back, and follows it.

All readers share a gate: one of them works at a time, for a few milliseconds, and then rests as
long as it has worked. So they take at most half of the event loop's time, however many there are.
"""

import asyncio
import mmap
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from os.path import samestat
from pathlib import Path
from typing import BinaryIO

from localkube.kubelet.container_log import log_paths, nano_stamp
from localkube.node_streams import LogOptions

_STAMP = 30  # characters of a time
_CHUNK = 256 * 1024
_BLOCK = 64 * 1024
_TURN_S = 0.005  # of work, before somebody rests


class Gate:
    """Within, nothing is waited for."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._worked_s = 0.0  # since somebody has rested
        self._began_s = 0.0

    async def __aenter__(self) -> None:
        await self._one_at_a_time.acquire()
        self._began_s = time.thread_time()

    async def __aexit__(self, *_: object) -> None:
        try:
            self._worked_s += time.thread_time() - self._began_s
            if self._worked_s > _TURN_S:
                rest_s, self._worked_s = self._worked_s, 0.0
                await asyncio.sleep(rest_s)
        finally:
            self._one_at_a_time.release()


@dataclass(frozen=True, slots=True)
class Log:
    path: Path
    files: int
    # Waits until there may be more. False: the run has ended, and nothing follows.
    more: Callable[[], Awaitable[bool]]
    gate: Gate = field(default_factory=Gate)


async def read_log(log: Log, options: LogOptions, now_ns: int) -> AsyncIterator[bytes]:
    left = options.limit_bytes
    async for out in _texts(log, options, _since(options, now_ns)):
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
    """`line` has no newline. A piece of a line (P) is shown without one, too."""
    stamp, _, rest = line.partition(b" ")
    _, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    end = b"\n" if tag == b"F" else b""
    return b"%s %s%s" % (stamp, text, end) if timestamps else text + end


async def _texts(log: Log, options: LogOptions, since: bytes) -> AsyncIterator[bytes]:
    """From the point where the options begin."""
    reading = _Reading(log.gate, options.timestamps)
    with ExitStack() as stack:
        opened: list[BinaryIO] = [
            stack.enter_context(path.open("rb"))
            for path in log_paths(log.path, log.files)
            if path.exists()
        ]
        await _seek(opened, options.tail_lines, since, log.gate)
        for file in opened:
            while (text := await reading.piece(file)) is not None:
                yield text
        if options.follow and opened:
            last = opened[-1]
            stack.pop_all()
            for file in opened[:-1]:
                file.close()
            async for text in _followed(log, last, reading):
                yield text


@dataclass(slots=True)
class _Reading:
    gate: Gate
    timestamps: bool
    rest: bytes = b""  # the start of a line

    async def piece(self, file: BinaryIO) -> bytes | None:
        """The text of the next lines; None at the end of the file."""
        async with self.gate:
            chunk = file.read(_CHUNK)
            if not chunk:
                return None
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            return b"".join(_shown(line, timestamps=self.timestamps) for line in lines)


async def _followed(log: Log, file: BinaryIO, reading: _Reading) -> AsyncIterator[bytes]:
    going_on = True
    with ExitStack() as stack:
        stack.enter_context(closing(file))
        while going_on:
            # Asked before the read, so that what the program wrote last is read after its end.
            going_on = await log.more()
            while (text := await reading.piece(file)) is not None:
                yield text
            while (newer := _newer(file, log)) is not None:
                stack.enter_context(newer)
                # What was written while this reader rested, before the file was moved aside.
                while (text := await reading.piece(file)) is not None:
                    yield text
                # One that was moved aside and deleted takes room on the disk until it is closed.
                file.close()
                stack.pop_all()
                file = stack.enter_context(newer)
                while (text := await reading.piece(file)) is not None:
                    yield text


def _newer(file: BinaryIO, log: Log) -> BinaryIO | None:
    """The file in which the log goes on after this one; None: in this one."""
    ours = os.fstat(file.fileno())
    present = [path for path in log_paths(log.path, log.files) if path.exists()]
    for place, path in enumerate(present):
        if samestat(ours, path.stat()):
            later = present[place + 1 : place + 2]
            return later[0].open("rb") if later else None
    # It was deleted since; if a rotation has failed halfway, the log goes on in it.
    return present[0].open("rb") if log.path in present else None


async def _seek(opened: list[BinaryIO], tail: int | None, since: bytes, gate: Gate) -> None:
    """Moves every file to its first wanted line."""
    wanted = tail
    for file in reversed(opened):
        size = file.seek(0, 2)
        start = 0
        if size == 0:
            continue
        async with gate:
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as content:
                if since:
                    start = _first_since(content, since)
                if wanted is not None:
                    from_end, taken = _last_lines(content, wanted)
                    start = max(start, from_end)
                    wanted -= taken
        file.seek(start)


def _first_since(content: mmap.mmap, since: bytes) -> int:
    """The position of the first line of that time or later: a binary search, as lines are
    sorted."""
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
    """The position of the last `wanted` lines, and how many there are. Ends of lines are counted by
    the block: line by line, ten megabytes of short lines would take a tenth of a second."""
    left, stop = wanted, len(content) - 1
    while stop > 0 and left:
        block = content[max(0, stop - _BLOCK) : stop]
        ends = block.count(b"\n")
        if ends >= left:
            return stop - len(block) + _line_from_end(block, left), wanted
        left, stop = left - ends, stop - len(block)
    return (0, wanted - left + 1) if left else (len(content), 0)


def _line_from_end(block: bytes, number: int) -> int:
    position = len(block)
    for _ in range(number):
        position = block.rfind(b"\n", 0, position)
    return position + 1
