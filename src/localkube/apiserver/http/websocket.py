"""The server's end of a WebSocket (RFC 6455): messages, by wsproto's framing.

Control frames are answered here. Messages wait in a queue; when it is full we stop reading from
the socket, so a sender is slowed down to the speed of whoever calls `receive`. Pongs are left out
when the client does not read: it could make us hoard them.

While we do not read, we see neither the client's pings nor that it has left. So from time to time
it gets a pong unasked: kubectl takes that for life, and a connection that is gone fails.
"""

import asyncio
from collections import deque

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import (
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    TextMessage,
)

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.outlet import Outlet

# Bytes of messages that may wait to be received, and what one counts beside its content.
_QUEUED = 256 * 1024
_PER_MESSAGE = 64

_GOING_AWAY = 1001
_TOO_BIG = 1009


class ServerWebSocket:
    """An accepted WebSocket. `feed`, `lose` and `go_away` are for the connection below it."""

    def __init__(self, outlet: Outlet, subprotocol: str, limits: WireLimits) -> None:
        self.subprotocol = subprotocol
        self._outlet = outlet
        self._limits = limits
        self._frames = Connection(ConnectionType.SERVER)
        self._parts: list[bytes | bytearray | str] = []  # of a message that is not complete
        self._parts_size = 0
        self._messages: deque[bytes | str] = deque()
        self._queued = 0
        self._is_paused = False
        self._is_over = False  # nothing more to receive
        self._pong_timer: asyncio.TimerHandle | None = None
        self._arrival = asyncio.Event()
        self._lost = asyncio.Event()
        self._peer_closed = asyncio.Event()

    async def receive(self) -> bytes | str | None:
        while not self._messages:
            if self._is_over:
                return None
            self._arrival.clear()
            await self._arrival.wait()
        message = self._messages.popleft()
        self._queued -= len(message) + _PER_MESSAGE
        # Half of the limit, so that reading is not stopped and started again for each message.
        if self._queued < _QUEUED // 2:
            self._resume()
        return message

    async def send(self, data: bytes | str) -> None:
        """Text for a str, binary for bytes. Raises ConnectionResetError after the end."""
        if self._frames.state is not ConnectionState.OPEN:
            raise ConnectionResetError("the WebSocket is closed")
        event = BytesMessage(data) if isinstance(data, bytes) else TextMessage(data)
        await self._outlet.write_and_wait(self._frames.send(event))

    async def wait_lost(self) -> None:
        await self._lost.wait()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye and wait a moment for the answer, so that the client can read all we sent."""
        self._say_close(code, reason)
        # If reading is paused, the client's close frame would never be read.
        self._resume()
        try:
            async with asyncio.timeout(self._limits.linger_s):
                await self._peer_closed.wait()
        except TimeoutError:
            pass
        self._outlet.close()

    def feed(self, data: bytes) -> None:
        if self._peer_closed.is_set():
            return
        self._frames.receive_data(data)
        for event in self._frames.events():
            self._take(event)
        if self._queued > _QUEUED:
            self._pause()

    def _take(self, event: Event) -> None:
        match event:
            case BytesMessage() | TextMessage():
                self._take_part(event)
            case Ping():
                if self._outlet.has_room and self._frames.state is ConnectionState.OPEN:
                    self._outlet.write(self._frames.send(event.response()))
            case CloseConnection():
                # From the client, or made by wsproto because of a broken frame.
                self._say_close(event.code, "")
                self._end_of_input()
            case _:
                pass

    def _take_part(self, part: BytesMessage | TextMessage) -> None:
        if self._is_over:
            return
        self._parts.append(part.data)
        self._parts_size += len(part.data)
        if self._parts_size > self._limits.message_bytes:
            self._say_close(_TOO_BIG, "message too big")
        elif part.message_finished:
            whole = _joined(self._parts)
            self._parts, self._parts_size = [], 0
            self._messages.append(whole)
            self._queued += len(whole) + _PER_MESSAGE
            self._arrival.set()

    def _say_close(self, code: int, reason: str) -> None:
        """After this nothing more is received, and what arrives is thrown away."""
        if self._frames.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            self._outlet.write(self._frames.send(CloseConnection(code, reason)))
        self._parts, self._parts_size = [], 0
        self._is_over = True
        self._arrival.set()

    def go_away(self) -> None:
        self._say_close(_GOING_AWAY, "")

    def lose(self) -> None:
        """The connection is gone."""
        self._lost.set()
        self._stop_pongs()
        self._end_of_input()

    def _end_of_input(self) -> None:
        self._is_over = True
        self._arrival.set()
        self._peer_closed.set()

    def _pause(self) -> None:
        if not self._is_paused and not self._is_over:
            self._is_paused = True
            self._outlet.pause_reading()
            self._pong_later()

    def _resume(self) -> None:
        self._stop_pongs()
        if self._is_paused:
            self._is_paused = False
            self._outlet.resume_reading()

    def _pong_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._pong_timer = loop.call_later(self._limits.pong_s, self._pong_unasked)

    def _pong_unasked(self) -> None:
        if self._outlet.has_room and self._frames.state is ConnectionState.OPEN:
            self._outlet.write(self._frames.send(Pong()))
        self._pong_later()

    def _stop_pongs(self) -> None:
        if self._pong_timer is not None:
            self._pong_timer.cancel()
            self._pong_timer = None


def _joined(parts: list[bytes | bytearray | str]) -> bytes | str:
    texts = [part for part in parts if isinstance(part, str)]
    if texts:
        return "".join(texts)
    return b"".join(part for part in parts if not isinstance(part, str))
