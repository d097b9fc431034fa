"""Connections that are kept alive for the next request."""

import asyncio
from collections.abc import Awaitable, Callable

from kubeclient.http1 import Connection

_MOST = 256  # in use at once
# Servers close connections that are idle for longer, and a request must not meet that.
_IDLE_S = 15.0


class Pool:
    def __init__(self, dial: Callable[[], Awaitable[Connection]]) -> None:
        self._dial = dial
        self._turn = asyncio.Semaphore(_MOST)
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self._tidying: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def take(self, *, new: bool = False) -> Connection:
        """Give it back. `new`: none that carried a request before. Raises what `dial` raises."""
        await self._turn.acquire()
        try:
            connection = None if new else self._kept()
            if connection is None:
                connection = await self._dial()
        except BaseException:
            self._turn.release()
            raise
        self._used.add(connection)
        if self._is_closed:  # while it was dialled
            connection.abort()
        return connection

    def give_back(self, connection: Connection) -> None:
        self._turn.release()
        self._used.discard(connection)
        connection.finish()
        if connection.is_free and not self._is_closed:
            loop = asyncio.get_running_loop()
            connection.idle_since_s = loop.time()
            self._idle.append(connection)
            if self._tidying is None:
                self._tidying = loop.call_later(_IDLE_S, self._tidy)
        else:
            connection.abort()

    def close(self) -> None:
        self._is_closed = True
        if self._tidying is not None:
            self._tidying.cancel()
        for connection in (*self._idle, *self._used):
            connection.abort()
        self._idle.clear()

    def _kept(self) -> Connection | None:
        too_old_s = asyncio.get_running_loop().time() - _IDLE_S
        while self._idle:
            connection = self._idle.pop()  # the last one: the others may become too old
            if connection.is_free and connection.idle_since_s > too_old_s:
                return connection
            connection.abort()
        return None

    def _tidy(self) -> None:
        loop = asyncio.get_running_loop()
        too_old_s = loop.time() - _IDLE_S
        kept = [each for each in self._idle if each.idle_since_s > too_old_s and each.is_free]
        for connection in self._idle:
            if connection not in kept:
                connection.abort()
        self._idle = kept
        self._tidying = loop.call_at(kept[0].idle_since_s + _IDLE_S, self._tidy) if kept else None
