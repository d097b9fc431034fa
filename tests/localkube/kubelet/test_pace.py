"""Containers that print without end get a share of the event loop's time, and not more."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.container_log import STDOUT, LogFile
from localkube.kubelet.output import Output
from localkube.kubelet.pace import Pace


@given(
    st.lists(st.floats(0.0001, 0.01), min_size=1, max_size=300),
    st.integers(1, 20),
)
def test_whoever_rests_as_told_takes_no_more_than_a_fifth_of_the_time(
    works: list[float], printers: int
) -> None:
    pace, now, total = Pace(), 1000.0, 0.0
    ready = [now] * printers
    for work in works:
        who = min(range(printers), key=ready.__getitem__)
        now = max(now, ready[who]) + work
        total += work
        ready[who] = now + pace.spend(now, work)
    # All of them may have worked once before they are told to rest.
    assert total <= 0.2 * (now - 1000.0) + 0.02 + printers * 0.01


def test_little_work_needs_no_rest() -> None:
    pace = Pace()
    assert pace.spend(1000.0, 0.001) == 0.0
    assert pace.spend(1001.0, 0.001) == 0.0


async def test_empty_lines_without_end_are_read_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write to the log takes 10 ms here: bytes alone would not slow the program down."""
    works = 0

    def slow(self: LogFile, stream: bytes, data: bytes) -> None:
        nonlocal works
        works += 1
        until = time.monotonic() + 0.01
        while time.monotonic() < until:
            pass

    monkeypatch.setattr(LogFile, "write", slow)
    log = LogFile(tmp_path / "0.log", lambda: 0, most_bytes=1000, files=1)
    pace = Pace()
    outputs = [Output(log, pace) for _ in range(4)]
    ends = [os.pipe() for _ in outputs]
    for output, (reading, writing) in zip(outputs, ends, strict=True):
        output.read(reading, STDOUT)
        os.set_blocking(writing, False)
    loop = outputs[0].loop
    began = loop.time()
    while loop.time() - began < 1.0:
        for _, writing in ends:
            try:
                os.write(writing, b"\n" * 4096)
            except BlockingIOError:
                continue
        await asyncio.sleep(0)
    passed = loop.time() - began
    for output, (_, writing) in zip(outputs, ends, strict=True):
        os.close(writing)
        for reader in output.readers:
            reader.close()
    log.close()
    assert works * 0.01 <= 0.2 * passed + 0.02 + 4 * 0.01 + 0.01
