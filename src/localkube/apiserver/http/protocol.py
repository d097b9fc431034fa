"""One client connection: requests in order, answers in order.

    reading ──request──▶ answering ──answer sent──▶ reading          (keep-alive)
                             ├─▶ streaming  (watch, logs)
                             └─▶ WebSocket  (exec, attach, port-forward)
    any ──refused, or "Connection: close"──▶ closing ──▶ closed

A client that leaves cancels its handler or stream; a WebSocket's `run` sees the end by `receive`.
"""

import asyncio
import logging
import math
from collections.abc import Coroutine
from enum import Enum
from typing import Any, Protocol, cast

from localkube.apiserver.http import bodies, handshake, heads
from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.outlet import Outlet
from localkube.apiserver.http.reader import BodyBudget, Received, RequestReader
from localkube.apiserver.http.websocket import ServerWebSocket
from localkube.apiserver.request import (
    Answer,
    ClientCertificate,
    Handler,
    Stream,
    Upgrade,
)
from localkube.apiserver.security.client_certificates import of_connection
from localkube.apiserver.security.identities import UNAUTHENTICATED
from localkube.apiserver.status import ApiError, bad_request, failure, internal

log = logging.getLogger(__name__)

# Requests that may wait for their turn on one connection before we stop reading from it.
_PIPELINED = 64


class Registry(Protocol):
    """Who counts connections and keeps their tasks: the server."""

    def opened(self, connection: "HttpConnection") -> None: ...

    def lost(self, connection: "HttpConnection") -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    @property
    def budget(self) -> BodyBudget: ...


class _Phase(Enum):
    """What we wait for; each has its own patience."""

    IDLE = "the next request"
    HEAD = "the rest of a request's head"
    BODY = "the rest of a request's body"
    ANSWER = "ourselves"
    CLOSE = "the client to close"


class HttpConnection(asyncio.Protocol):
    def __init__(self, handler: Handler, limits: WireLimits, registry: Registry) -> None:
        self._handler = handler
        self._limits = limits
        self._registry = registry
        self._loop = asyncio.get_running_loop()
        self._reader = RequestReader(limits, registry.budget, expects_continue=self._continue)
        self._current: Received | None = None
        self._task: asyncio.Task[None] | None = None
        self._websocket: ServerWebSocket | None = None
        self._refusal: Answer | None = None
        self._is_advancing = False
        self._is_streaming = False
        self._is_ending = False  # the server shuts down
        self._is_known = False  # a request of it was authenticated
        self._is_reading_paused = False
        self._phase = _Phase.HEAD
        self._deadline = math.inf
        self._certificate: ClientCertificate | None = None
        self._outlet: Outlet

    def is_authenticated(self) -> bool:
        """Whether a request of this connection, or the one under way, is somebody's. Pages that
        everybody may read do not count."""
        user = self._current.request.user if self._current is not None else None
        return self._is_known or (user is not None and UNAUTHENTICATED not in user.groups)

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)  # uvloop's does not say so
        stream.set_write_buffer_limits(high=bodies.SLICE)
        self._outlet = Outlet(stream, stall_timeout_s=self._limits.stall_timeout_s)
        self._certificate = of_connection(transport.get_extra_info("ssl_object"))
        self._deadline = self._loop.time() + self._limits.head_timeout_s
        self._registry.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._outlet.lose()
        self._reader.stop()
        if self._websocket is not None:
            self._websocket.lose()
        elif self._task is not None:
            self._task.cancel()
        self._registry.lost(self)

    def pause_writing(self) -> None:
        self._outlet.pause(self._loop.time())

    def resume_writing(self) -> None:
        self._outlet.resume()

    def data_received(self, data: bytes) -> None:
        if self._websocket is not None:
            self._websocket.feed(data)
        elif self._phase is _Phase.CLOSE or self._refusal is not None:
            pass  # we only hear the client out
        elif self._reader.unread is not None:
            self._feed_early(data)
        else:
            try:
                self._reader.feed(data)
            except ApiError as error:
                self._refusal = error.answer()
                self._reader.release()
            self._advance()

    def _feed_early(self, data: bytes) -> None:
        """The client speaks another protocol before we have agreed to it."""
        assert self._reader.unread is not None
        self._reader.unread += data
        if len(self._reader.unread) > bodies.SLICE:
            self._pause_reading()

    def _continue(self) -> None:
        # A client that has requests before this one in the pipeline goes on without being told.
        if self._current is None and not self._reader.received:
            self._outlet.write(heads.CONTINUE)

    # Requests, one after the other.

    def _advance(self) -> None:
        received = self._reader.received
        # A handler that never awaits is done when `spawn` returns. The flag keeps `_serve` from
        # calling this method again for each pipelined request, one call inside the other.
        self._is_advancing = True
        while received and self._current is None and self._phase is not _Phase.CLOSE:
            self._current = received.popleft()
            task = self._registry.spawn(self._serve(self._current))
            self._task = None if task.done() else task
        self._is_advancing = False
        if self._phase is _Phase.CLOSE:
            received.clear()
        elif self._current is not None:
            self._wait_for(_Phase.ANSWER)
            if len(received) > _PIPELINED:
                self._pause_reading()
        elif self._refusal is not None:
            self._refuse(self._refusal)
        else:
            self._resume_reading()
            self._wait_for(self._reading_phase())

    def _reading_phase(self) -> _Phase:
        if self._reader.is_mid_body:
            return _Phase.BODY
        return _Phase.HEAD if self._reader.is_mid_head else _Phase.IDLE

    def _wait_for(self, phase: _Phase) -> None:
        # A trickle of bytes must not move the deadline; a request that is done does.
        if phase is not self._phase or phase is _Phase.IDLE:
            self._phase = phase
            self._deadline = self._loop.time() + _patience_s(phase, self._limits)

    async def _serve(self, received: Received) -> None:
        received.request.certificate = self._certificate
        try:
            reply = await self._handler(received.request)
        except ApiError as error:
            reply = error.answer()
        except Exception as error:  # noqa: BLE001 - the last line of defence: the client gets a 500
            reply = _unforeseen(error, received)
        self._is_known = self.is_authenticated()  # also for when this request is over
        try:
            match reply:
                case Answer():
                    size = bodies.length(reply.body)
                    if size > bodies.SLICE:
                        await self._send_large(reply, size, received)
                    else:
                        self._write(reply, bodies.whole(reply.body), received)
                case Stream():
                    await self._stream(reply, received)
                case Upgrade():
                    await self._upgrade(reply, received)
        except ConnectionResetError:
            # Most likely the client has left; if it was another connection that broke, there is no
            # other way left to say so.
            self._outlet.abort()
            return
        self._task = None
        self._complete(received)
        if not self._is_advancing:
            self._advance()

    def _complete(self, received: Received) -> None:
        self._current = None
        if not self._keeps_alive(received):
            self.close()

    def _keeps_alive(self, received: Received) -> bool:
        return received.keep_alive and not self._is_ending

    # Answers.

    def _write(self, answer: Answer, body: bytes, received: Received) -> None:
        head = heads.with_length(answer, len(body), received.request.warnings)
        ending = b"\r\n" if self._keeps_alive(received) else heads.CLOSE
        if received.request.method == "HEAD" or answer.status in heads.BODILESS:
            body = b""
        self._outlet.write(b"%b%b%b" % (head, ending, body))

    async def _send_large(self, answer: Answer, size: int, received: Received) -> None:
        head = heads.with_length(answer, size, received.request.warnings)
        self._outlet.write(head + (b"\r\n" if self._keeps_alive(received) else heads.CLOSE))
        if received.request.method != "HEAD":
            for piece in bodies.slices(answer.body):
                await self._outlet.write_and_wait(piece)

    async def _stream(self, stream: Stream, received: Received) -> None:
        head = heads.without_length(stream, received.request.warnings)
        framing = heads.CLOSE if received.is_http10 else heads.CHUNKED
        frame = bodies.as_is if received.is_http10 else bodies.chunk
        self._is_streaming = True
        try:
            await self._outlet.write_and_wait(head + framing)
            if received.request.method != "HEAD":
                async for data in stream.chunks:
                    if data:
                        await self._outlet.write_and_wait(frame(data))
                self._outlet.write(frame(b""))
        except asyncio.CancelledError:
            # The last chunk tells the client that the stream ended on purpose, not by a broken
            # connection.
            if self._is_ending:
                self._outlet.write(frame(b""))
                self.close()
            raise
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - as in _serve; the 200 is out already
            _unforeseen(error, received)
            self._outlet.abort()
        finally:
            self._is_streaming = False
            await bodies.end(stream.chunks)

    async def _upgrade(self, upgrade: Upgrade, received: Received) -> None:
        request, unread = received.request, self._reader.unread
        if unread is None or not handshake.asks_for_websocket(request):
            self._refuse_upgrade(bad_request("Upgrade request required"), received)
            return
        chosen = handshake.subprotocol(request.headers, upgrade.subprotocols)
        if chosen is None:
            message = handshake.unsupported(request.headers, upgrade.subprotocols)
            self._refuse_upgrade(failure(403, "Forbidden", message), received)
            return
        websocket = ServerWebSocket(self._outlet, chosen, self._limits, self._registry.budget)
        self._websocket = websocket
        self._outlet.write(handshake.acceptance(request.headers, chosen))
        self._resume_reading()
        websocket.feed(unread)
        try:
            await upgrade.run(websocket)
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - as in _serve; the 101 is out already
            _unforeseen(error, received)
            await websocket.close(1011)
        await websocket.close()

    def _refuse_upgrade(self, error: ApiError, received: Received) -> None:
        answer = error.answer()
        self._write(answer, bodies.whole(answer.body), received)

    def _refuse(self, answer: Answer) -> None:
        head = heads.with_length(answer, bodies.length(answer.body), ())
        self._outlet.write(head + heads.CLOSE + bodies.whole(answer.body))
        # Closing with more of the request on its way would reset the connection, and the answer
        # would be lost: hear the client out.
        self._wait_for(_Phase.CLOSE)

    # Reading, waiting, ending.

    def _pause_reading(self) -> None:
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self._outlet.pause_reading()

    def _resume_reading(self) -> None:
        if self._is_reading_paused:
            self._is_reading_paused = False
            self._outlet.resume_reading()

    def end_if_overdue(self, now: float) -> None:
        # Streams may stand still: whoever reads logs with a pager does not read for minutes.
        is_stream = self._is_streaming or self._websocket is not None
        if now >= self._outlet.stalls_at and not is_stream:
            self._outlet.abort()
        elif now >= self._deadline:
            if self._phase is _Phase.CLOSE and self._outlet.is_closing():
                self._outlet.abort()
            self.close()

    def end(self) -> None:
        """The server shuts down: no more requests; streams end, answers under way are sent."""
        self._is_ending = True
        self._reader.received.clear()
        if self._websocket is not None:
            self._websocket.go_away()
        elif self._current is None:
            self.close()
        elif self._is_streaming and self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Close once everything is sent; the next sweeps abort if that takes too long."""
        self._phase = _Phase.CLOSE
        self._deadline = self._loop.time() + self._limits.stall_timeout_s
        self._outlet.close()

    def abort(self) -> None:
        self._outlet.abort()


def _patience_s(phase: _Phase, limits: WireLimits) -> float:
    match phase:
        case _Phase.IDLE:
            return limits.idle_timeout_s
        case _Phase.HEAD:
            return limits.head_timeout_s
        case _Phase.BODY:
            return limits.body_timeout_s
        case _Phase.ANSWER:
            return math.inf
        case _Phase.CLOSE:
            return limits.linger_s


def _unforeseen(error: Exception, received: Received) -> Answer:
    request = received.request
    log.error(
        "request failed", exc_info=error, extra={"method": request.method, "path": request.path}
    )
    return internal(f"{type(error).__name__}").answer()
