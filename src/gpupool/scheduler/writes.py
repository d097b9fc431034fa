"""How the scheduler writes to the API server.

`Writes` runs the requests, a limited number at a time, while decisions go on. `WriteContext` is
what every part that writes is made from.
"""

import asyncio
import datetime
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.metrics import Metrics
from gpupool.scheduler.report import Reports
from kubeclient.client import Kube

log = logging.getLogger(__name__)

Write = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What binder, resizer and evictor share."""

    kube: Kube
    state: ClusterState
    reports: Reports
    metrics: Metrics
    clock: Callable[[], float]
    now: Callable[[], datetime.datetime]
    # Asked before every write: false from the moment on in which another may be the leader.
    may_act: Callable[[], bool]


class Writes:
    """`below_limit`: an Event, set while fewer writes are in flight than the limit.

    Low-priority writers wait for it: the recorder of events leaves the API server to Bindings.
    """

    def __init__(self, at_a_time: int) -> None:
        self.below_limit = asyncio.Event()
        self.below_limit.set()
        self._at_a_time = at_a_time
        self._slots = asyncio.Semaphore(at_a_time)
        self._running: set[asyncio.Task[None]] = set()

    async def start(self, write: Write) -> None:
        """Returns when the write has started; waits while the limit is reached."""
        if self._slots.locked():
            self.below_limit.clear()
        # The scheduling loop waits here: while the API server is behind, no more decisions are
        # made, and tasks do not pile up.
        await self._slots.acquire()
        task = asyncio.create_task(write())
        # The event loop has only weak references to its tasks.
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def drain(self, limit_s: float) -> None:
        """Wait for all started writes, at most `limit_s`; then cancel those that are left."""
        if self._running and limit_s:
            await asyncio.wait(self._running, timeout=limit_s)
        # A Binding that is cancelled stays UNANSWERED in the ledger, so the Lease is not given up
        # (`Ledger.is_settled`).
        for task in list(self._running):
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._slots.release()
        self._running.discard(task)
        # Not at the first free slot: answers come in bunches, and while Bindings are queued, free
        # slots are taken again at once. Only when most slots are free is there nothing to write.
        if 8 * len(self._running) < self._at_a_time:
            self.below_limit.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a write failed", exc_info=task.exception())
