"""Writes: a limited number at a time; `below_limit` tells when they queue up."""

import asyncio
import logging

import pytest

from gpupool.scheduler.writes import Writes


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_below_limit_is_set_until_writes_queue_up_and_again_when_few_are_left() -> None:
    writes, done = Writes(16), asyncio.Semaphore(0)

    async def write() -> None:
        await done.acquire()

    for _ in range(16):
        await writes.start(write)
    assert writes.below_limit.is_set()
    one_more = asyncio.create_task(writes.start(write))
    await _turns()
    assert not one_more.done()
    assert not writes.below_limit.is_set()
    for left in range(16, 0, -1):
        done.release()
        await _turns()
        assert writes.below_limit.is_set() == (left < 2), f"{left} are left"
    done.release()
    await writes.drain(60.0)


async def test_a_write_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def write() -> None:
        raise ValueError("broken")

    writes = Writes(1)
    with caplog.at_level(logging.ERROR):
        await writes.start(write)
        await _turns()
    assert "a write failed" in caplog.messages
    await writes.drain(60.0)
