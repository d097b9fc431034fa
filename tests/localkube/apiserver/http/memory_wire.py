"""A connection without sockets: fed with bytes, it remembers what was written."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.protocol import HttpConnection
from localkube.apiserver.http.reader import BodyBudget
from localkube.apiserver.request import Handler

# Of the event loop: enough to answer all that the tests send at once.
_TURNS = 100


class MemoryTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_open = True
        self.is_reading_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.is_open = False

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Tasks:
    """Stands in for the server."""

    def __init__(self) -> None:
        self.running: set[asyncio.Task[None]] = set()
        self.budget = BodyBudget(1_000_000)

    def opened(self, connection: HttpConnection) -> None:
        pass

    def lost(self, connection: HttpConnection) -> None:
        pass

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return task

    async def settle(self) -> None:
        """Until nothing goes on any more. A failed task fails the test."""
        while self.running:
            batch = set(self.running)
            for ended in await asyncio.gather(*batch, return_exceptions=True):
                if isinstance(ended, Exception):  # being cancelled is none
                    raise ended
            # Of tasks that have ended, Python 3.12 gathers the results at once: nobody else has had
            # a turn to take them out.
            self.running -= batch


async def answered(handler: Handler, parts: list[bytes], limits: WireLimits) -> bytes:
    """All that the connection writes when it gets these parts and then loses the client."""
    transport, tasks = MemoryTransport(), Tasks()
    connection = HttpConnection(handler, limits, tasks)
    connection.connection_made(transport)
    for part in parts:
        if transport.is_open:
            connection.data_received(part)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    connection.connection_lost(None)
    await tasks.settle()
    return bytes(transport.written)
