"""Reading logs keeps nobody else waiting, however long they are and however fast somebody reads."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet import log_reading
from localkube.kubelet.container_log import STDOUT
from localkube.kubelet.log_reading import Gate, Log, read_log
from localkube.node_streams import LogOptions
from tests.faults.loop_watchdog import Watchdog
from tests.localkube.kubelet.test_container_log import START_NS, log_file, read, written

_MIB = 1 << 20
# Two files of ten megabytes, as long as they get: half a million empty lines.
_EMPTY_LINES = [b"\n" * 2000] * 240


async def _received(log: Log, options: LogOptions) -> int:
    """How much a reader gets that never has to wait, as over a fast connection."""
    return sum([len(chunk) async for chunk in read_log(log, options, START_NS)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"timestamps": True},
        {"tail_lines": 10**18},
        {"tail_lines": 400_000, "limit_bytes": 1},
        {"since_seconds": 10**9, "timestamps": True},
        {"follow": True},
    ],
    ids=str,
)
async def test_a_log_of_empty_lines_is_read_in_turns(
    tmp_path: Path, options: dict[str, int]
) -> None:
    log = written(tmp_path, *_EMPTY_LINES, most_bytes=10 * _MIB)
    wanted = LogOptions(container="c", **options)  # type: ignore[arg-type]
    with Watchdog().watching() as watchdog:
        size = await asyncio.create_task(_received(log, wanted))
    assert size > 0
    assert not watchdog.stalls, "\n".join(watchdog.stalls)


async def test_a_line_without_end_is_read_in_turns(tmp_path: Path) -> None:
    log = written(tmp_path, *[b"x" * 65_536] * 1600, most_bytes=10 * _MIB)  # a hundred megabytes
    with Watchdog().watching() as watchdog:
        size = await asyncio.create_task(_received(log, LogOptions(container="c")))
    assert 10 * _MIB < size < 31 * _MIB
    assert not watchdog.stalls, "\n".join(watchdog.stalls)


@given(st.lists(st.integers(0, 40), max_size=40), st.integers(0, 50))
def test_the_last_lines_are_found_across_blocks(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], tail: int
) -> None:
    lines = [b"x" * length + b"\n" for length in lengths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reading, "_BLOCK", 50)
        log = written(tmp_path_factory.mktemp("logs"), b"".join(lines), most_bytes=400)
        found = read(log, tail_lines=tail)
        whole = read(log)
    assert found == b"".join(whole.splitlines(keepends=True)[-tail:] if tail else [])


async def test_readers_work_one_at_a_time_and_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many read, the loop gets round to everybody else after one piece of a log."""
    monkeypatch.setattr(log_reading, "_CHUNK", 4096)
    monkeypatch.setattr(log_reading, "_TURN_S", -1.0)  # each piece is a whole turn
    log = written(tmp_path, *[b"a line\n" * 100] * 20)
    pieces, most, before = [0] * 50, 0, 0

    async def reads(place: int) -> None:
        async for _ in read_log(log, LogOptions(container="c"), START_NS):
            pieces[place] += 1

    readers = [asyncio.create_task(reads(place)) for place in range(len(pieces))]
    while not all(reader.done() for reader in readers):
        await asyncio.sleep(0)
        most, before = max(most, sum(pieces) - before), sum(pieces)
    assert min(pieces) > 10
    assert most <= 2  # one that has just ended its piece, and the next one's


async def test_a_follower_keeps_no_file_open_that_was_moved_aside(tmp_path: Path) -> None:
    log = log_file(tmp_path, most_bytes=100)
    log.write(STDOUT, b"0\n")
    steps, open_at_once = iter(range(1, 40)), []

    async def more() -> bool:
        number = next(steps, None)
        open_at_once.append(_open_below(tmp_path))
        if number is not None:
            log.write(STDOUT, b"%d\n" % number)
        return number is not None

    following = read_log(
        Log(tmp_path / "0.log", 3, more), LogOptions(container="c", follow=True), START_NS
    )
    said = b"".join([chunk async for chunk in following])
    assert said.split() == [b"%d" % number for number in range(40)]
    assert max(open_at_once) <= 2  # the writer's, and the follower's
    log.close()
    assert _open_below(tmp_path) == 0


async def test_a_follower_that_is_late_finds_all_files_that_are_left(tmp_path: Path) -> None:
    log = log_file(tmp_path, most_bytes=100)
    log.write(STDOUT, b"0\n")
    steps = iter([range(1, 6), range(0)])

    async def more() -> bool:
        numbers = next(steps)
        for number in numbers:  # two files are moved aside meanwhile
            log.write(STDOUT, b"%d\n" % number)
        return bool(numbers)

    following = read_log(
        Log(tmp_path / "0.log", 3, more), LogOptions(container="c", follow=True), START_NS
    )
    said = b"".join([chunk async for chunk in following])
    assert said.split() == [b"0", b"1", b"2", b"3", b"4", b"5"]
    log.close()


class _Resting(Gate):
    """Somebody writes whenever a reader rests, which is after each piece."""

    def __init__(self, write: Callable[[], None]) -> None:
        super().__init__()
        self._write = write

    async def __aexit__(self, *_: object) -> None:
        self._write()
        await super().__aexit__()


async def test_a_follower_reads_what_was_written_while_it_rested_before_the_next_file(
    tmp_path: Path,
) -> None:
    log = log_file(tmp_path, most_bytes=100)
    texts = iter([b"", b"0\n1\n2\n", b"3\n4\n5\n"])  # each of three lines fills a file

    def write() -> None:
        log.write(STDOUT, next(texts, b""))

    asked = iter([True, True, False])

    async def more() -> bool:
        return next(asked)

    following = read_log(
        Log(tmp_path / "0.log", 3, more, _Resting(write)),
        LogOptions(container="c", follow=True),
        START_NS,
    )
    said = b"".join([chunk async for chunk in following])
    assert said.split() == [b"0", b"1", b"2", b"3", b"4", b"5"]
    log.close()


def _open_below(directory: Path) -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(os.path.realpath(link).startswith(str(directory)) for link in links)
