"""Accepting connections, counting them, and ending them."""

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.listening import listen
from localkube.apiserver.http.protocol import HttpConnection
from localkube.apiserver.http.reader import BodyBudget
from localkube.apiserver.request import Handler

log = logging.getLogger(__name__)

# From Python 3.12 on, a request that never waits is answered before its task is ever scheduled.
_EAGERLY: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}

_TLS_SHUTDOWN_S = 2.0
_ACCEPT_AGAIN_S = 0.2
_ABORT_S = 2.0


async def serve(
    handler: Handler,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ssl_context: ssl.SSLContext | None,
    limits: WireLimits,
    beyond_loopback: bool = False,
) -> "Server":
    """Answer requests until closed. Raises NotLoopback, or OSError when the port is taken.

    Port 0 draws a free one; a loopback host means both loopback addresses.
    """
    listeners = listen(host, port, beyond_loopback=beyond_loopback)
    server = Server(handler, listeners, ssl_context, limits)
    server.start()
    return server


class Server:
    """Guards the number of connections. Beyond the limit a newcomer takes the place of whoever is
    there longest without having said who he is. If all have, the newcomer is hung up on."""

    def __init__(
        self,
        handler: Handler,
        listeners: Sequence[socket.socket],
        ssl_context: ssl.SSLContext | None,
        limits: WireLimits,
    ) -> None:
        self.port: int = listeners[0].getsockname()[1]
        self.budget = BodyBudget(limits.unfinished_bytes)
        self._loop = asyncio.get_running_loop()
        self._handler = handler
        self._listeners = listeners
        self._ssl_context = ssl_context
        self._limits = limits
        self._accepted: set[socket.socket] = set()  # and nothing done about them yet
        self._handshaking: set[HttpConnection] = set()
        self._connections: set[HttpConnection] = set()
        # Who has perhaps not authenticated yet, oldest first; with socket and opening task.
        self._strangers: dict[HttpConnection, tuple[socket.socket, asyncio.Task[None]]] = {}
        self._own_tasks: set[asyncio.Task[None]] = set()
        self._request_tasks: set[asyncio.Task[None]] = set()
        self._is_full = False
        self._none_left = asyncio.Event()

    def start(self) -> None:
        for listener in self._listeners:
            self._start(self._accept(listener), "http-accept")
        self._start(self._sweep(), "http-sweep")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = self._loop.create_task(work, name=name)
        self._own_tasks.add(task)
        task.add_done_callback(self._own_tasks.discard)
        return task

    async def _accept(self, listener: socket.socket) -> None:
        """By hand: a socket that `sock_accept` has taken is lost when that is cancelled."""
        while True:
            try:
                accepted, _ = listener.accept()
            except BlockingIOError:
                await self._readable(listener)
            except OSError as error:
                # Out of file descriptors, most likely: those who leave make room.
                log.warning("cannot accept connections", extra={"error": str(error)})
                await asyncio.sleep(_ACCEPT_AGAIN_S)
            else:
                accepted.setblocking(False)
                self._take(accepted)
                if self._is_full:
                    # Those who were hung up on are gone only after a turn of the loop. Without it,
                    # a burst of newcomers would need file descriptors for both.
                    await asyncio.sleep(0)

    async def _readable(self, listener: socket.socket) -> None:
        is_readable = asyncio.Event()
        self._loop.add_reader(listener, is_readable.set)
        try:
            await is_readable.wait()
        finally:
            self._loop.remove_reader(listener)

    def _take(self, accepted: socket.socket) -> None:
        is_full = self.connections_open() >= self._limits.connections
        if is_full and not self._is_full:
            log.warning("too many connections", extra={"limit": self._limits.connections})
        self._is_full = is_full
        if is_full and not self._make_room():
            accepted.close()
            return
        connection = HttpConnection(self._handler, self._limits, self)
        self._accepted.add(accepted)
        opening = self._start(self._open(accepted, connection), "http-open")
        self._strangers[connection] = accepted, opening

    def _make_room(self) -> bool:
        """Hangs up on the oldest stranger. False: there is none."""
        while (oldest := next(iter(self._strangers), None)) is not None:
            accepted, opening = self._strangers.pop(oldest)
            if not oldest.is_authenticated():
                self._hang_up(oldest, accepted, opening)
                return True
        return False

    def _hang_up(
        self, oldest: HttpConnection, accepted: socket.socket, opening: asyncio.Task[None]
    ) -> None:
        # Not counted any more, although it takes a moment until it is gone.
        self._connections.discard(oldest)
        self._handshaking.discard(oldest)
        if opening.done():
            oldest.abort()
        elif accepted in self._accepted:  # its task has not begun, and will not
            opening.cancel()
            self._accepted.discard(accepted)
            accepted.close()
        else:
            opening.cancel()

    def connections_open(self) -> int:
        """Those before and in their TLS handshake count too."""
        return len(self._connections) + len(self._handshaking) + len(self._accepted)

    async def _open(self, accepted: socket.socket, connection: HttpConnection) -> None:
        self._accepted.discard(accepted)
        self._handshaking.add(connection)
        with_tls = self._ssl_context is not None
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._ssl_context,
                ssl_handshake_timeout=self._limits.head_timeout_s if with_tls else None,
                ssl_shutdown_timeout=_TLS_SHUTDOWN_S if with_tls else None,
            )
        except OSError as error:  # so are ssl.SSLError and TimeoutError
            log.debug("handshake failed", extra={"error": str(error)})
            self._strangers.pop(connection, None)
        except asyncio.CancelledError:
            self.lost(connection)  # uvloop closes it then, and does not say so
            raise
        finally:
            self._handshaking.discard(connection)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._limits.shortest_s() / 4)
            now = self._loop.time()
            for connection in tuple(self._connections):
                connection.end_if_overdue(now)

    # Called by connections.

    def opened(self, connection: HttpConnection) -> None:
        self._handshaking.discard(connection)
        self._connections.add(connection)

    def lost(self, connection: HttpConnection) -> None:
        self._strangers.pop(connection, None)
        self._connections.discard(connection)
        if not self._connections:
            self._none_left.set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.Task(work, loop=self._loop, name="http-request", **_EAGERLY)
        if not task.done():
            # asyncio itself holds only weak references to tasks.
            self._request_tasks.add(task)
            task.add_done_callback(self._request_tasks.discard)
        return task

    async def close(self, grace_s: float) -> None:
        """Accept no more, end streams and WebSockets, and wait for answers under way."""
        for task in tuple(self._own_tasks):
            task.cancel()
        await asyncio.gather(*self._own_tasks, return_exceptions=True)
        for accepted in self._accepted:  # by tasks that had not begun
            accepted.close()
        for listener in self._listeners:
            listener.close()
        for connection in tuple(self._connections):
            connection.end()
        await self._wait_none_left(grace_s)
        for connection in tuple(self._connections):
            connection.abort()
        await self._wait_none_left(_ABORT_S)
        for task in self._request_tasks:
            task.cancel()
        await asyncio.gather(*self._request_tasks, return_exceptions=True)

    async def _wait_none_left(self, limit_s: float) -> None:
        self._none_left.clear()
        if self._connections:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._none_left.wait()
