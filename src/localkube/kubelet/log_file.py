"""The log of one run of a container, written in the format of the container runtimes:

    2026-11-15T20:00:00.000000000Z stdout F a line
    2026-11-15T20:00:00.000000000Z stderr P a piece of a long one

Past `most_bytes` the file is moved aside (.1, .2); the oldest goes.
"""

import datetime
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

STDOUT, STDERR = b"stdout", b"stderr"
_LONGEST_PIECE = 16 * 1024


def nano_stamp(when_ns: int) -> bytes:
    seconds, nanos = divmod(when_ns, 10**9)
    at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return b"%s.%09dZ" % (at.strftime("%Y-%m-%dT%H:%M:%S").encode(), nanos)


def log_paths(path: Path, files: int) -> list[Path]:
    """Where the log may be, the oldest part first."""
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
        self._file = self._opened()
        self._rest: dict[bytes, bytes] = {STDOUT: b"", STDERR: b""}

    def write(self, stream: bytes, data: bytes) -> None:
        """Whole lines go to the file; the rest waits for its end."""
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
        """What was written, by stream: of the current file the last `most` bytes or fewer."""
        with self.path.open("rb") as file:
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
        """Ends a line that the program has not ended."""
        for stream, rest in self._rest.items():
            if rest:
                self._put(stream, b"P", rest)
        self._rest = {STDOUT: b"", STDERR: b""}
        os.close(self._file)

    def _put(self, stream: bytes, tag: bytes, lines: bytes) -> None:
        head = b"%s %s %s " % (nano_stamp(self._clock_ns()), stream, tag)
        os.write(self._file, head + lines.replace(b"\n", b"\n" + head) + b"\n")
        if os.fstat(self._file).st_size > self._most_bytes:
            self._rotate()

    def _rotate(self) -> None:
        os.close(self._file)
        paths = log_paths(self.path, self._files)
        for older, newer in pairwise(paths):
            if newer.exists():
                newer.replace(older)
        self._file = self._opened()

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.path, flags, 0o600)
