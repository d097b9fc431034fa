"""The sending side of a connection: writes, and waiting until the client has read."""

import asyncio
import math


class Outlet:
    """Guards one promise: what waits to be sent stays small, or the sender waits."""

    def __init__(self, transport: asyncio.Transport, *, stall_timeout_s: float) -> None:
        self.transport = transport
        self.is_lost = False
        self.stalls_at = math.inf  # when a client that does not read is given up
        self._stall_timeout_s = stall_timeout_s
        self._room = asyncio.Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    def write(self, data: bytes | memoryview) -> None:
        if not self.is_lost:
            self.transport.write(data)

    async def write_and_wait(self, data: bytes | memoryview) -> None:
        """Raises ConnectionResetError once the client is gone."""
        if self.is_lost:
            raise ConnectionResetError("the client has closed the connection")
        self.transport.write(data)
        if not self._room.is_set():
            await self._room.wait()

    def pause(self, now: float) -> None:
        self.stalls_at = now + self._stall_timeout_s
        self._room.clear()

    def resume(self) -> None:
        self.stalls_at = math.inf
        self._room.set()

    def lose(self) -> None:
        self.is_lost = True
        self.resume()
