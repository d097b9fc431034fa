"""Timers: "look at this again then", for any number of things, with one sleeping task."""

import asyncio
import heapq
from collections.abc import Callable


class Timers:
    def __init__(self, now: Callable[[], float], ring: Callable[[str], None]) -> None:
        self._now = now
        self._ring = ring
        self._heap: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}  # of each key; other entries in the heap are void
        self._earlier = asyncio.Event()

    def add(self, when: float, key: str) -> None:
        """Once for each key: an earlier time wins, and whoever is rung may ask for more."""
        known = self._next.get(key)
        if known is not None and known <= when:
            return
        self._next[key] = when
        heapq.heappush(self._heap, (when, key))
        if self._heap[0][0] == when:
            self._earlier.set()

    def ring_due(self) -> float | None:
        """Rings all that is due; the seconds until the next."""
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            if self._next.get(key) == when:
                del self._next[key]
                self._ring(key)
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
