"""Timers: adds keys to a queue at given times, with one sleeping task for any number of keys.

A heap holds all times. An entry is never removed from the middle of the heap: when a key gets an
earlier time, a second entry is pushed, and the old one is ignored when it comes up, because
`_next` has another time for the key. So `add` costs O(log n), also for tens of thousands of pods.
"""

import asyncio
import heapq
from collections.abc import Callable


class Timers:
    def __init__(self, now: Callable[[], float], ring: Callable[[str], None]) -> None:
        self._now = now
        self._ring = ring
        self._heap: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}  # the valid time of each key
        self._earlier = asyncio.Event()

    def add(self, when: float, key: str) -> None:
        """Rings the key once. If the key has a time already, the earlier one wins."""
        known = self._next.get(key)
        if known is not None and known <= when:
            return
        self._next[key] = when
        heapq.heappush(self._heap, (when, key))
        if self._heap[0][0] == when:
            self._earlier.set()

    def ring_due(self) -> float | None:
        """Rings all keys that are due; returns the seconds until the next entry."""
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            # Entries that were replaced by an earlier time stay in the heap, and are passed over
            # here.
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
