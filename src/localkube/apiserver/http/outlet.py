"""The sending side of a connection: writes, waits for a client that reads slowly, and closes."""

import asyncio
import math


class Outlet:
    """Bounds the bytes that wait to be sent: beyond the bound, the sender waits."""

    def __init__(self, transport: asyncio.Transport, *, stall_timeout_s: float) -> None:
        self._transport: asyncio.Transport | None = transport
        self.stalls_at = math.inf  # when a client that does not read is given up
        self._stall_timeout_s = stall_timeout_s
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_lost(self) -> bool:
        return self._transport is None

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    def write(self, data: bytes | memoryview) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def write_and_wait(self, data: bytes | memoryview) -> None:
        """Raises ConnectionResetError once the client is gone."""
        if self._transport is None:
            raise ConnectionResetError("the client has closed the connection")
        self._transport.write(data)
        if not self._room.is_set():
            await self._room.wait()

    def pause(self, now: float) -> None:
        self.stalls_at = now + self._stall_timeout_s
        self._room.clear()

    def resume(self) -> None:
        self.stalls_at = math.inf
        self._room.set()

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def lose(self) -> None:
        # The transport knows the connection, which knows us: whoever breaks that circle spares the
        # garbage collector 50 KB of buffers for each connection that ever was.
        self._transport = None
        self.resume()
