"""The log of one run of a container, as it is written (log_reading.py reads it back).

The format is that of the container runtimes:

    2026-11-15T20:00:00.000000000Z stdout F a line
    2026-11-15T20:00:00.000000000Z stderr P a piece of a long line

A file that grows beyond `most_bytes` is renamed (.1, .2), and the oldest one is deleted. What the
disk does not take is lost, as with the container runtimes: a program goes on when its log cannot.
"""

import datetime
import logging
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

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
