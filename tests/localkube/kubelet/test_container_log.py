import asyncio
import datetime
import errno
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.container_log import STDERR, STDOUT, LogFile, log_paths
from localkube.kubelet.log_reading import Log, read_log
from localkube.node_streams import LogOptions

START = datetime.datetime(2026, 11, 15, 20, 0, tzinfo=datetime.UTC)
START_NS = int(START.timestamp()) * 10**9


def seconds() -> Iterator[int]:
    """A clock that advances by a second with each call."""
    return (START_NS + step * 10**9 for step in count())


async def no_more() -> bool:
    return False


def written(directory: Path, *chunks: bytes, most_bytes: int = 10**6, files: int = 3) -> Log:
    clock = seconds()
    log = LogFile(directory / "0.log", lambda: next(clock), most_bytes=most_bytes, files=files)
    for chunk in chunks:
        log.write(STDOUT, chunk)
    log.close()
    return Log(directory / "0.log", files, no_more)


def read(log: Log, now_s: int = 1000, **options: object) -> bytes:
    async def whole() -> bytes:
        wanted = LogOptions(container="c", **options)  # type: ignore[arg-type]
        chunks = read_log(log, wanted, START_NS + now_s * 10**9)
        return b"".join([chunk async for chunk in chunks])

    return asyncio.run(whole())


def test_the_file_is_in_the_format_of_container_runtimes(tmp_path: Path) -> None:
    written(tmp_path, b"one\ntwo\n", b"end")
    assert (tmp_path / "0.log").read_bytes() == (
        b"2026-11-15T20:00:00.000000000Z stdout F one\n"
        b"2026-11-15T20:00:00.000000000Z stdout F two\n"
        b"2026-11-15T20:00:01.000000000Z stdout P end\n"
    )


def test_times_are_shown_when_asked_for(tmp_path: Path) -> None:
    log = written(tmp_path, b"one\n", b"two\n")
    assert read(log, timestamps=True, tail_lines=1) == b"2026-11-15T20:00:01.000000000Z two\n"


def test_since_begins_at_a_time(tmp_path: Path) -> None:
    log = written(tmp_path, b"0\n", b"1\n", b"2\n", b"3\n")
    assert read(log, since_time=START + datetime.timedelta(seconds=2)) == b"2\n3\n"
    assert read(log, now_s=4, since_seconds=1) == b"3\n"
    assert read(log, since_seconds=10**6) == b"0\n1\n2\n3\n"
    assert read(log, now_s=10, since_seconds=1) == b""


def test_both_streams_are_kept_apart_and_shown_together(tmp_path: Path) -> None:
    clock = seconds()
    log = LogFile(tmp_path / "0.log", lambda: next(clock), most_bytes=10**6, files=3)
    log.write(STDOUT, b"begin ")
    log.write(STDERR, b"error\n")
    log.write(STDOUT, b"end\n")
    log.close()
    assert read(Log(tmp_path / "0.log", 3, no_more)) == b"error\nbegin end\n"


def test_a_long_log_loses_its_beginning(tmp_path: Path) -> None:
    chunks = [b"%d\n" % number for number in range(100)]
    log = written(tmp_path, *chunks, most_bytes=400, files=3)
    said = read(log)
    assert b"".join(chunks).endswith(said)
    assert len(said.split()) >= 20
    assert len(list(tmp_path.iterdir())) == 3
    assert all(path.stat().st_size < 500 for path in log_paths(log.path, 3))
    assert read(log, tail_lines=12) == b"".join(chunks[-12:])


texts = st.lists(st.sampled_from([b"a", b"b\n", b"\n", b"a b\n", b"\xff"]), max_size=12)


@given(texts, st.integers(0, 5), st.integers(0, 9))
def test_a_written_log_can_be_read(chunks: list[bytes], tail: int, limit: int) -> None:
    with TemporaryDirectory() as directory:
        log = written(Path(directory), *chunks, most_bytes=120, files=50)
        whole = b"".join(chunks)
        assert read(log) == whole
        assert read(log, limit_bytes=limit) == whole[:limit]
        lines = whole.splitlines(keepends=True)
        assert read(log, tail_lines=tail) == b"".join(lines[len(lines) - min(tail, len(lines)) :])


def test_a_follower_sees_what_is_written_later_also_in_the_next_file(tmp_path: Path) -> None:
    clock = seconds()
    log = LogFile(tmp_path / "0.log", lambda: next(clock), most_bytes=100, files=3)
    log.write(STDOUT, b"0\n")
    steps = iter(range(1, 8))

    async def more() -> bool:
        number = next(steps, None)
        if number is not None:
            log.write(STDOUT, b"%d\n" % number)
        return number is not None

    said = read(Log(tmp_path / "0.log", 3, more), follow=True)
    assert said == b"0\n1\n2\n3\n4\n5\n6\n7\n"
    log.close()


class Disk:
    """Replaces calls on files: a disk that takes `room` more bytes, in pieces of `piece`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.piece = 10**9
        self.open_fails = self.rename_fails = False
        self._write, self._open, self._replace = os.write, os.open, Path.replace
        monkeypatch.setattr(os, "write", self._written)
        monkeypatch.setattr(os, "open", self._opened)
        monkeypatch.setattr(Path, "replace", lambda path, to: self._renamed(path, to))

    def _written(self, file: int, data: memoryview) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        size = min(len(data), self.piece, len(data) if self.room is None else self.room)
        if self.room is not None:
            self.room -= size
        return self._write(file, data[:size])

    def _opened(self, *arguments: Any) -> int:
        if self.open_fails:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._open(*arguments)

    def _renamed(self, path: Path, to: Path) -> Path:
        if self.rename_fails and path.suffix == ".new":
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._replace(path, to)


def log_file(directory: Path, most_bytes: int = 10**6) -> LogFile:
    clock = seconds()
    return LogFile(directory / "0.log", lambda: next(clock), most_bytes=most_bytes, files=3)


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    disk.piece = 7
    log = log_file(tmp_path)
    log.write(STDOUT, b"a line that is written in pieces\nanother\n")
    log.close()
    text = b"a line that is written in pieces\nanother\n"
    assert read(Log(log.path, 3, no_more)) == text


def test_a_full_disk_loses_whole_lines_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    log = log_file(tmp_path)
    log.write(STDOUT, b"one\n")
    disk.room = 60  # a line and a half
    log.write(STDOUT, b"two\nthree\nfour\n")
    log.write(STDERR, b"five\n")
    disk.room = None
    log.write(STDOUT, b"six\n")
    assert [text for _, text in log.so_far(10**6)] == [b"one\n", b"two\n", b"six\n"]
    disk.room = 0
    log.write(STDOUT, b"the end")
    log.close()
    assert read(Log(log.path, 3, no_more)) == b"one\ntwo\nsix\n"


@pytest.mark.parametrize("fault", ["open_fails", "rename_fails"])
def test_a_rotation_that_fails_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    disk = Disk(monkeypatch)
    log = log_file(tmp_path, most_bytes=100)
    setattr(disk, fault, True)
    for number in range(4):
        log.write(STDOUT, b"line %d\n" % number)
    # No other file may get the number of a descriptor that the log still uses.
    stranger = (tmp_path / "stranger").open("wb")
    log.write(STDOUT, b"line 4\n")
    stranger.close()
    assert (tmp_path / "stranger").read_bytes() == b""
    setattr(disk, fault, False)
    log.write(STDOUT, b"line 5\n")
    log.write(STDOUT, b"line 6\n")
    log.close()
    lines = b"".join(b"line %d\n" % number for number in range(7))
    assert read(Log(log.path, 3, no_more)) == lines
    assert len(list(tmp_path.glob("0.log*"))) == 2


def test_a_follower_goes_on_when_a_rotation_has_failed_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    log = log_file(tmp_path, most_bytes=100)
    chunks = iter([b"one\n" * 3, b"two\n"])

    async def more() -> bool:
        chunk = next(chunks, None)
        if chunk is not None:
            disk.rename_fails = True
            log.write(STDOUT, chunk)
        return chunk is not None

    assert read(Log(log.path, 3, more), follow=True) == b"one\n" * 3 + b"two\n"
