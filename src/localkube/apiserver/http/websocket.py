"""The server's end of a WebSocket (RFC 6455): messages, by wsproto's framing.

Control frames are answered here. Messages wait in a queue; when it is full we stop reading from
the socket, so a sender is slowed down to the speed of whoever calls `receive`. Pongs are left out
when the client does not read: it could make us hoard them.

Frames are read in turns of a few milliseconds: a quarter of a megabyte of empty ones, which come in
one piece, would keep everybody else waiting for half a second. Meanwhile nothing is read from the
socket. Of messages that are not complete, all clients together hold what bodies may.

While we do not read, we see neither the client's pings nor that it has left. So from time to time
it gets a pong unasked: kubectl takes that for life, and a connection that is gone fails.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator

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
from localkube.apiserver.http.reader import BodyBudget
from localkube.apiserver.status import ApiError

# Bytes of messages that may wait to be received, and what one counts beside its content.
_QUEUED = 256 * 1024
_PER_MESSAGE = 64

_TURN_S = 0.01
_LOOKS_EVERY = 16  # frames, at the clock

_GOING_AWAY = 1001
_TOO_BIG = 1009
_TRY_AGAIN = 1013


class ServerWebSocket:
    """An accepted WebSocket. `feed`, `lose` and `go_away` are for the connection below it."""

    def __init__(
        self, outlet: Outlet, subprotocol: str, limits: WireLimits, budget: BodyBudget
    ) -> None:
        self.subprotocol = subprotocol
        self._outlet = outlet
        self._limits = limits
        self._budget = budget
        self._frames = Connection(ConnectionType.SERVER)
        self._unread: Iterator[Event] | None = None  # frames for which no turn was left
        self._is_behind = False  # there are such, and their turn comes
        self._begun = bytearray()  # a message that is not complete
        self._is_lost = False
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
        if self._is_paused and self._queued < _QUEUED // 2:
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
        if self._unread is None:
            self._unread = self._frames.events()
            self._read_on()

    def _read_on(self) -> None:
        """Takes frames until there are none, the turn is over, or too many messages wait."""
        end_s = time.monotonic() + _TURN_S
        for number, event in enumerate(self._unread or ()):
            self._take(event)
            if self._queued > _QUEUED and not self._is_over:
                self._pause()
                return
            if number % _LOOKS_EVERY == _LOOKS_EVERY - 1 and time.monotonic() > end_s:
                self._fall_behind()
                return
        self._unread = None
        if self._is_lost:
            self._end_of_input()
        elif self._is_behind:
            self._is_behind = False
            self._outlet.resume_reading()

    def _fall_behind(self) -> None:
        if not self._is_behind:
            self._is_behind = True
            self._outlet.pause_reading()
        asyncio.get_running_loop().call_soon(self._read_on)

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
        data = part.data.encode() if isinstance(part.data, str) else part.data
        if len(self._begun) + len(data) > self._limits.message_bytes:
            self._say_close(_TOO_BIG, "message too big")
        elif part.message_finished:
            # Not joined if there is nothing to join: most messages have one frame.
            self._put(part.data if not self._begun else self._whole(part, data))
        else:
            self._begin(data)

    def _begin(self, data: bytes | bytearray) -> None:
        before = len(self._begun)
        self._begun += data
        try:
            self._budget.change(before, len(self._begun))
        except ApiError:
            self._say_close(_TRY_AGAIN, "too many large messages are under way")

    def _whole(self, last: BytesMessage | TextMessage, data: bytes | bytearray) -> bytes | str:
        whole = bytes(self._begun + data)
        self._forget_begun()
        return whole.decode() if isinstance(last, TextMessage) else whole

    def _forget_begun(self) -> None:
        self._budget.change(len(self._begun), 0)
        self._begun = bytearray()

    def _put(self, message: bytes | bytearray | str) -> None:
        self._messages.append(message if isinstance(message, str) else bytes(message))
        self._queued += len(message) + _PER_MESSAGE
        self._arrival.set()

    def _say_close(self, code: int, reason: str) -> None:
        """After this nothing more is received, and what arrives is thrown away."""
        if self._frames.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            self._outlet.write(self._frames.send(CloseConnection(code, reason)))
        self._forget_begun()
        self._is_over = True
        self._arrival.set()

    def go_away(self) -> None:
        self._say_close(_GOING_AWAY, "")

    def lose(self) -> None:
        """The connection is gone. What has arrived is still taken."""
        self._lost.set()
        self._stop_pongs()
        self._is_lost = True
        if self._unread is None:
            self._end_of_input()

    def _end_of_input(self) -> None:
        self._forget_begun()
        self._is_over = True
        self._arrival.set()
        self._peer_closed.set()

    def _pause(self) -> None:
        self._is_paused = True
        if not self._is_behind:
            self._is_behind = True
            self._outlet.pause_reading()
        if self._pong_timer is None and not self._is_lost:
            self._pong_later()

    def _resume(self) -> None:
        self._stop_pongs()
        if self._is_paused:
            self._is_paused = False
            # Not at once: whoever receives would never run out of messages, and never wait.
            asyncio.get_running_loop().call_soon(self._read_on)

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
