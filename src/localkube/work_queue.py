"""WorkQueue: keys of objects that have to be looked at, shared by several workers.

A key waits at most once, however often it is added. Two workers never hold the same key: a key that
is added while a worker holds it is queued again when that worker is done. So a worker may read the
state of its key without a lock, and the last change is always seen.
"""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FIRST_RETRY_S = 0.05
_LAST_RETRY_S = 60.0
_NO_REST_S = 0.02
_LONGEST_REST_S = 1.0


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        # asyncio.Queue wakes one worker per key. An Event would wake all of them, and a kubelet
        # has 64 workers for pods.
        self._waiting: asyncio.Queue[K] = asyncio.Queue()
        self._known: set[K] = set()  # the keys in `_waiting`
        self._busy: set[K] = set()
        self._again: set[K] = set()  # added while busy
        self._failures: dict[K, int] = {}  # in a row
        self._words: dict[K, str] = {}  # of the last failure
        self._timers: dict[K, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._known)

    def add(self, key: K) -> None:
        if key in self._busy:
            self._again.add(key)
        elif key not in self._known:
            self._known.add(key)
            self._waiting.put_nowait(key)

    def add_after(self, key: K, delay_s: float) -> None:
        """Adds the key after the delay. If several delays are given for a key, the earliest time
        wins and the key is added once."""
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_s
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= when:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(when, self._ring, key)

    async def take(self) -> K:
        """Waits for a key. The worker has to call `done` or `failed` with it."""
        key = await self._waiting.get()
        self._known.discard(key)
        self._busy.add(key)
        return key

    def done(self, key: K, took_s: float = 0.0) -> None:
        """The work succeeded. A key whose work took `took_s` rests for as long before it may be
        taken again: an owner of a thousand pods, each of which reports a change, is reconciled
        now and then, not a thousand times."""
        self._failures.pop(key, None)
        self._words.pop(key, None)
        if took_s < _NO_REST_S:
            self._release(key)
        else:
            rest_s = min(took_s, _LONGEST_REST_S)
            asyncio.get_running_loop().call_later(rest_s, self._release, key)

    def failed(self, key: K) -> float:
        """The work failed. The key is added again after an exponential backoff, which is returned
        in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay_s: float = min(_LAST_RETRY_S, _FIRST_RETRY_S * 2 ** min(failures, 20))
        self._release(key)
        self.add_after(key, delay_s)
        return delay_s

    def is_news(self, key: K, words: str) -> bool:
        """Whether the work on the key has not failed with these words last time: a key that fails
        for days is logged in full once."""
        known = self._words.get(key)
        self._words[key] = words
        return known != words

    def has_failed(self, key: K) -> bool:
        """Whether the last work on the key failed."""
        return key in self._failures

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _release(self, key: K) -> None:
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _ring(self, key: K) -> None:
        del self._timers[key]
        self.add(key)
