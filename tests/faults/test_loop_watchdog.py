"""The watchdog of the event loop itself: it names what worked for long, and only that."""

import asyncio
import time

from tests.faults.loop_watchdog import Watchdog
from tests.processor_speed import BOUND_S


async def _works(seconds: float) -> None:
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


async def test_a_task_that_keeps_the_loop_is_named() -> None:
    with Watchdog().watching() as watchdog:
        await asyncio.create_task(_works(5 * BOUND_S), name="the-culprit")
    (stall,) = watchdog.stalls
    assert "the-culprit" in stall
    assert "_works" in stall


async def test_waiting_is_no_stall() -> None:
    with Watchdog().watching() as watchdog:
        await asyncio.create_task(_works(BOUND_S / 10), name="quick")
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, 3 * BOUND_S)
        time.sleep(3 * BOUND_S)  # noqa: ASYNC251 - the machine is busy with something else
        await asyncio.sleep(0)
    assert watchdog.callbacks
    assert not watchdog.stalls
