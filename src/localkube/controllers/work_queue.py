"""WorkQueue: keys that need a look. A key waits once however often it is added; the same key is
never worked on twice at a time; failures come back later and later."""

import asyncio
from collections import deque

from kubeclient.mirror import Key

_FIRST_RETRY_S = 0.05
_LAST_RETRY_S = 60.0
_NO_REST_S = 0.02
_LONGEST_REST_S = 1.0


class WorkQueue:
    def __init__(self) -> None:
        self._waiting: deque[Key] = deque()
        self._known: set[Key] = set()  # waiting
        self._busy: set[Key] = set()
        self._again: set[Key] = set()  # added while busy
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def add(self, key: Key) -> None:
        if key in self._busy:
            self._again.add(key)
        elif key not in self._known:
            self._known.add(key)
            self._waiting.append(key)
            self._wake.set()

    def add_after(self, key: Key, delay_s: float) -> None:
        """Once, after the delay; an earlier time for the same key wins."""
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_s
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= when:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(when, self._ring, key)

    async def take(self) -> Key:
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        key = self._waiting.popleft()
        self._known.discard(key)
        self._busy.add(key)
        return key

    def done(self, key: Key, took_s: float = 0.0) -> None:
        """Worked out well. A key rests for as long as it took: one that has a thousand pods, each
        of which reports something, is looked at now and then rather than a thousand times."""
        self._failures.pop(key, None)
        if took_s < _NO_REST_S:
            self._release(key)
        else:
            rest_s = min(took_s, _LONGEST_REST_S)
            asyncio.get_running_loop().call_later(rest_s, self._release, key)

    def failed(self, key: Key) -> float:
        """Comes back by itself; returns after how many seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay_s: float = min(_LAST_RETRY_S, _FIRST_RETRY_S * 2 ** min(failures, 20))
        self._release(key)
        self.add_after(key, delay_s)
        return delay_s

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _release(self, key: Key) -> None:
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _ring(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)
