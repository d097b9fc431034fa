"""Timers: "look at this again then", for any number of things, with one sleeping task."""

import asyncio
import heapq
from collections.abc import Callable


class Timers:
    def __init__(self, now: Callable[[], float], ring: Callable[[str], None]) -> None:
        self._now = now
        self._ring = ring
        self._heap: list[tuple[float, str]] = []
        self._earlier = asyncio.Event()

    def add(self, when: float, key: str) -> None:
        heapq.heappush(self._heap, (when, key))
        if self._heap[0][0] == when:
            self._earlier.set()

    def ring_due(self) -> float | None:
        """Rings all that is due; the seconds until the next."""
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            self._ring(heapq.heappop(self._heap)[1])
        return self._heap[0][0] - now if self._heap else None

    async def run(self) -> None:
        while True:
            pause_s = self.ring_due()
            self._earlier.clear()
            try:
                async with asyncio.timeout(pause_s):
                    await self._earlier.wait()
            except TimeoutError:
                continue
