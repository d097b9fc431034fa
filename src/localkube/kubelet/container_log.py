"""The log of one run of a container: writing it, and reading it back.

The format is that of the container runtimes:

    2026-11-15T20:00:00.000000000Z stdout F a line
    2026-11-15T20:00:00.000000000Z stderr P a piece of a long line

A file that grows beyond `most_bytes` is renamed (.1, .2), and the oldest one is deleted. What the
disk does not take is lost, as with the container runtimes: a program goes on when its log cannot.
"""

import datetime
import logging
import mmap
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from os.path import samestat
from pathlib import Path
from typing import BinaryIO

from localkube.node_streams import LogOptions

log = logging.getLogger(__name__)

STDOUT, STDERR = b"stdout", b"stderr"
# The length at which container runtimes split lines by default.
_LONGEST_PIECE = 16 * 1024


def nano_stamp(when_ns: int) -> bytes:
    seconds, nanos = divmod(when_ns, 10**9)
    at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return b"%s.%09dZ" % (at.strftime("%Y-%m-%dT%H:%M:%S").encode(), nanos)


def log_paths(path: Path, files: int) -> list[Path]:
    """The files of a log that may exist, the oldest first."""
    aside = [path.with_name(f"{path.name}.{number}") for number in range(files - 1, 0, -1)]
    return [*aside, path]


class LogFile:
    def __init__(
        self, path: Path, clock_ns: Callable[[], int], *, most_bytes: int, files: int
    ) -> None:
        self.path = path
        self._clock_ns = clock_ns
        self._most_bytes = most_bytes
        self._files = files
        self._file = _opened(path)
        self._fails = False  # the last write has failed
        self._rest: dict[bytes, bytes] = {STDOUT: b"", STDERR: b""}

    def write(self, stream: bytes, data: bytes) -> None:
        """Writes whole lines; the start of a line waits for the rest. Never raises OSError."""
        data = self._rest[stream] + data
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if cut:
            self._put(stream, b"F", data[: cut - 1])
        if len(rest) >= _LONGEST_PIECE:
            self._put(stream, b"P", rest)
            rest = b""
        self._rest[stream] = rest

    def so_far(self, most: int) -> Iterator[tuple[bytes, bytes]]:
        """The last `most` bytes or fewer of the current file, with their streams."""
        with open(os.dup(self._file), "rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - most)
            file.seek(start)
            if start:
                file.readline()  # a part of a line
            for line in file:
                _, stream, tag, text = line.split(b" ", 3)
                yield stream, text if tag == b"F" else text[:-1]
        for stream, rest in self._rest.items():
            if rest:
                yield stream, rest

    def close(self) -> None:
        """Writes the last line, if the program has not ended it."""
        for stream, rest in self._rest.items():
            if rest:
                self._put(stream, b"P", rest)
        self._rest = {STDOUT: b"", STDERR: b""}
        os.close(self._file)

    def _put(self, stream: bytes, tag: bytes, lines: bytes) -> None:
        head = b"%s %s %s " % (nano_stamp(self._clock_ns()), stream, tag)
        try:
            self._append(head + lines.replace(b"\n", b"\n" + head) + b"\n")
            if os.fstat(self._file).st_size > self._most_bytes:
                self._rotate()
            self._fails = False
        except OSError as error:
            if not self._fails:
                log.warning("container log not written", extra={"path": self.path, "why": error})
            self._fails = True

    def _append(self, data: bytes) -> None:
        """All of it, or as many whole lines as the disk takes."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            written = len(data) - len(left)
            torn = written - (data.rfind(b"\n", 0, written) + 1)
            os.ftruncate(self._file, os.fstat(self._file).st_size - torn)
            raise

    def _rotate(self) -> None:
        """If it fails, the log goes on in the file that is open, and the next write tries again."""
        fresh = self.path.with_name(f"{self.path.name}.new")
        file = _opened(fresh)
        try:
            for older, newer in pairwise(log_paths(self.path, self._files)):
                if newer.exists():
                    newer.replace(older)
            fresh.replace(self.path)
        except OSError:
            os.close(file)
            raise
        os.close(self._file)
        self._file = file


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


_STAMP = 30  # characters of a time
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Log:
    path: Path
    files: int
    # Waits until there may be more. False: the run has ended, and nothing follows.
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
    """`line` has no newline. A piece of a line (P) is shown without one, too."""
    stamp, _, rest = line.partition(b" ")
    _, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    end = b"\n" if tag == b"F" else b""
    return b"%s %s%s" % (stamp, text, end) if timestamps else text + end


async def _pieces(log: Log, options: LogOptions, since: bytes) -> AsyncIterator[list[bytes]]:
    """Lists of lines, from the point where the options begin."""
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
        # Asked before the read, so that what the program wrote last is read after its end.
        going_on = await log.more()
        for chunk in _chunks(file):
            *lines, rest = (rest + chunk).split(b"\n")
            yield lines
        if _is_rotated(file, log.path):
            file = stack.enter_context(log.path.open("rb"))
            for chunk in _chunks(file):
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines


def _is_rotated(file: BinaryIO, path: Path) -> bool:
    try:
        return not samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False  # just now, or it has failed halfway: then the log goes on in this file


def _seek(opened: list[BinaryIO], tail: int | None, since: bytes) -> None:
    """Moves every file to its first wanted line."""
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
    """The position of the last `wanted` lines, and how many there are."""
    position, taken = len(content), 0
    while taken < wanted and position > 0:
        position = content.rfind(b"\n", 0, position - 1) + 1
        taken += 1
    return position, taken
