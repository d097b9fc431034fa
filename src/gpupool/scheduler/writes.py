"""Writes: work that goes on beside the decisions, so much at a time; waited for at the end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)


Write = Callable[[], Coroutine[Any, Any, None]]


class Writes:
    """`below_limit`: set unless they queue up; then what matters less had better wait."""

    def __init__(self, at_a_time: int) -> None:
        self.below_limit = asyncio.Event()
        self.below_limit.set()
        self._at_a_time = at_a_time
        self._slots = asyncio.Semaphore(at_a_time)
        self._running: set[asyncio.Task[None]] = set()

    async def start(self, write: Write) -> None:
        """Returns when it has begun; waits while too many are at it."""
        if self._slots.locked():
            self.below_limit.clear()
        await self._slots.acquire()
        task = asyncio.create_task(write())
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def drain(self, limit_s: float) -> None:
        """Until all that has begun is done, or the time is over."""
        if self._running and limit_s:
            await asyncio.wait(self._running, timeout=limit_s)
        for task in list(self._running):
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._slots.release()
        self._running.discard(task)
        # Answers come in bunches; while more is to be written, not all come at once.
        if 8 * len(self._running) < self._at_a_time:
            self.below_limit.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a write failed", exc_info=task.exception())
