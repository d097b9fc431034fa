"""What has to come before anything that waits, and how long loops let others go first."""

import asyncio
import time

_TURN_S = 0.01


async def within_a_task() -> None:
    """Time limits, threads and task groups need a task, and a handler's first step has none."""
    await asyncio.sleep(0)


class Turns:
    """For a loop over much: `await turns.next()` lets others go first once its turn is over."""

    __slots__ = ("_end_s",)

    def __init__(self) -> None:
        self._end_s = time.monotonic() + _TURN_S

    async def next(self) -> None:
        if time.monotonic() > self._end_s:
            await asyncio.sleep(0)
            self._end_s = time.monotonic() + _TURN_S
