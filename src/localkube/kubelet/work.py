"""Work: keys that want a look. Each waits once, and nobody looks at one twice at a time."""

import asyncio


class Work:
    def __init__(self) -> None:
        self._waiting: asyncio.Queue[str] = asyncio.Queue()  # wakes one worker, not all
        self._known: set[str] = set()  # waiting
        self._busy: set[str] = set()
        self._again: set[str] = set()  # added while busy

    def add(self, key: str) -> None:
        if key in self._busy:
            self._again.add(key)
        elif key not in self._known:
            self._known.add(key)
            self._waiting.put_nowait(key)

    async def take(self) -> str:
        key = await self._waiting.get()
        self._known.discard(key)
        self._busy.add(key)
        return key

    def done(self, key: str) -> None:
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
