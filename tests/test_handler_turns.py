"""The watchdog over handlers itself: it names the request that held the loop, and only that."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.handler_turns import Turns, _Measured
from tests.processor_speed import BOUND_S

_REQUEST = SimpleNamespace(method="GET", path="/culprit", body=b"")


def _work(seconds: float) -> None:
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


async def test_a_handler_that_holds_the_loop_is_named() -> None:
    turns = Turns()

    async def handler() -> str:
        await asyncio.sleep(0)
        _work(5 * BOUND_S)
        return "done"

    assert await _Measured(turns, handler(), _REQUEST) == "done"
    assert turns.count == 2
    assert ["/culprit" in each for each in turns.too_long()] == [True]


async def test_waiting_and_many_short_turns_are_no_stall() -> None:
    turns = Turns()

    async def handler() -> None:
        for _ in range(5):
            _work(BOUND_S / 3)
            await asyncio.sleep(0)
        time.sleep(2 * BOUND_S)  # noqa: ASYNC251 - the machine is busy with something else
        await asyncio.sleep(2 * BOUND_S)

    await _Measured(turns, handler(), _REQUEST)
    assert turns.too_long() == []


async def test_what_a_handler_raises_and_catches_is_its_own() -> None:
    turns, caught = Turns(), list[Any]()

    async def handler() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError as error:
            caught.append(error)
        raise KeyError("why")

    async def measured() -> None:
        await _Measured(turns, handler(), _REQUEST)

    task = asyncio.create_task(measured())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(KeyError, match="why"):
        await task
    assert len(caught) == 1
