"""One connection of HTTP/1.1: carries one request at a time, and reads the answer to it.

httptools parses, strictly: an answer with two lengths, or with a length and chunks, is none. What
comes while nobody has asked closes the connection, so that no answer is taken for that of another
request.
"""

import asyncio
import contextlib
import zlib
from typing import Any, cast

import httptools

MAX_ANSWER_BYTES = 1024**3  # enough for a list of some hundred thousand pods
# Of what is not body, in a row: status line, headers, interim answers, extensions of chunks.
_MAX_HEAD_BYTES = 2**18
_MAX_AHEAD_BYTES = 2**21  # of a stream that nobody reads
_NO_BODY = 204
_JOINED_BYTES = 2**16  # a body up to this is copied behind its head, to be one packet
_READ = (b"content-length", b"transfer-encoding", b"content-encoding", b"retry-after")
_GZIP = 16 + zlib.MAX_WBITS


class Disconnected(ConnectionError):
    """The connection ended before the first byte of an answer."""


class BadAnswer(ValueError):
    """An answer that is not HTTP, or not whole: the request may have happened."""


class Answer:
    """What is known of the answer so far."""

    __slots__ = (
        *("_ahead", "_connection", "_is_read_as_it_comes", "_parts", "_size", "_waiting"),
        *("coding", "ended", "error", "has_begun", "headers", "is_stream", "status"),
    )

    def __init__(self, connection: "Connection", *, is_stream: bool) -> None:
        self.status = 0  # 0: not known yet
        self.headers: dict[bytes, bytes] = {}  # those in _READ
        self.has_begun = False
        self.ended = False
        self.error: Exception | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._ahead = 0  # bytes that the reader of a stream has not taken yet
        self.coding: Any = None  # a decompressor
        self.is_stream = is_stream
        self._connection = connection
        self._is_read_as_it_comes = is_stream
        self._waiting: asyncio.Future[None] | None = None

    async def whole(self) -> bytes:
        """The body. Raises Disconnected, BadAnswer."""
        self._is_read_as_it_comes = False
        self._connection.resume()
        while not self.ended:
            await self._news()
        if self.error is not None:
            raise self.error
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    async def head(self) -> int:
        """The status. Raises Disconnected, BadAnswer."""
        while not self.status and not self.ended:
            await self._news()
        if not self.status and self.error is not None:
            raise self.error
        return self.status

    async def next(self) -> bytes:
        """What has come of the body since the last call; empty: that was all. Raises BadAnswer."""
        while not self._parts and not self.ended:
            await self._news()
        found = b"".join(self._parts)
        self._parts.clear()
        self._ahead = 0
        if not found and self.error is not None:
            raise self.error
        self._connection.resume()
        return found

    def add(self, part: bytes) -> None:
        if self.coding is not None:
            part = self._decoded(part)
        self._parts.append(part)
        self._size += len(part)
        if self._is_read_as_it_comes:
            self._ahead += len(part)
            if self._ahead > _MAX_AHEAD_BYTES:
                self._connection.pause()
            self.tell()
        elif self._size > MAX_ANSWER_BYTES:
            raise BadAnswer(f"more than {MAX_ANSWER_BYTES} bytes")

    def _decoded(self, part: bytes) -> bytes:
        try:
            # A few kilobytes can stand for gigabytes.
            found: bytes = self.coding.decompress(part, MAX_ANSWER_BYTES + 1 - self._size)
        except zlib.error as error:
            raise BadAnswer(f"the answer is not gzip: {error}") from error
        if self.coding.unused_data:
            raise BadAnswer("the answer goes on after its gzip")
        return found

    def end(self, error: Exception | None = None) -> None:
        if error is None and self.coding is not None and not self.coding.eof:
            error = BadAnswer("the answer's gzip ended too early")
        self.ended, self.error = True, error
        self.tell()

    def tell(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _news(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.requests = 0
        self.idle_since_s = 0.0
        self._is_open = False
        self._transport: asyncio.Transport | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._answer: Answer | None = None
        self._is_interim = False
        self._is_kept_alive = False
        self._is_paused = False
        self._head_bytes = 0

    @property
    def is_free(self) -> bool:
        """Whether it can carry another request."""
        # An answer that came before all of the request was sent leaves the rest of it in the way.
        return (
            self._is_open
            and self._answer is None
            and self._transport is not None
            and not self._transport.get_write_buffer_size()
        )

    def ask(self, head: bytes, body: bytes, *, is_stream: bool = False) -> Answer:
        """Sends a request. Raises Disconnected."""
        transport = self._transport
        if transport is None or not self._is_open:
            raise Disconnected
        self.requests += 1
        self._answer = answer = Answer(self, is_stream=is_stream)
        self._is_kept_alive = self._is_interim = False
        self._head_bytes = 0
        if len(body) <= _JOINED_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return answer

    def pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def finish(self) -> None:
        """After the answer: what is not whole, or not kept alive by the server, is closed."""
        answer, self._answer = self._answer, None
        if answer is not None and answer.ended and self._is_kept_alive and not self._is_paused:
            return
        self.abort()

    def abort(self) -> None:
        """At once, without waiting for the other side's end of TLS."""
        self._is_open = False
        if self._transport is not None:
            transport, self._transport = self._transport, None
            # Python 3.11.2 (Debian 12) cannot abort what closes already.
            with contextlib.suppress(AttributeError):
                transport.abort()

    # -- of asyncio --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._is_open = True

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or answer.ended:
            self.abort()
            return
        answer.has_begun = True
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
            if self._head_bytes > _MAX_HEAD_BYTES and not answer.ended:
                raise BadAnswer(f"headers of more than {_MAX_HEAD_BYTES} bytes")
        except httptools.HttpParserUpgrade:
            self._fail(BadAnswer("the server wants to speak another protocol"))
        except (httptools.HttpParserError, BadAnswer) as error:
            cause = error if isinstance(error, BadAnswer) else error.__context__
            if isinstance(cause, BadAnswer):
                self._fail(cause)
            else:
                self._fail(BadAnswer(f"the answer is not HTTP/1.1: {error}"))

    def _fail(self, error: BadAnswer) -> None:
        # Of what follows a whole answer, only the connection suffers.
        if self._answer is not None and not self._answer.ended:
            self._answer.end(error)
        self.abort()

    def eof_received(self) -> None:
        self._is_open = False  # and asyncio closes it

    def connection_lost(self, error: Exception | None) -> None:
        self._is_open = False
        self._transport = None
        answer = self._answer
        if answer is None or answer.ended:
            return
        if not answer.has_begun:
            answer.end(Disconnected(str(error or "")))
        elif answer.status and _ends_with_connection(answer) and error is None:
            answer.end()
        else:
            answer.end(BadAnswer("the connection ended in the middle of the answer"))

    # -- of the parser -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._answer is None or self._answer.ended:
            raise BadAnswer("more answers than requests")

    def on_header(self, name: bytes, value: bytes) -> None:
        answer = self._answer
        if answer is not None and not answer.status:  # others are trailers
            name = name.lower()
            if name in _READ and name in answer.headers:
                raise BadAnswer(f"two headers {name.decode()}")
            if name in _READ:
                answer.headers[name] = value

    def on_headers_complete(self) -> None:
        answer = self._answer
        assert answer is not None  # or on_message_begin had failed
        status = self._parser.get_status_code()
        self._is_interim = 100 <= status < 200
        if self._is_interim:
            answer.headers.clear()
            return
        # An API server does not redirect, and credentials must not follow to another host.
        if status < 200 or 300 <= status < 400:
            raise BadAnswer(f"HTTP {status} is no answer of an API server; is its URL right?")
        coding = answer.headers.get(b"transfer-encoding", b"chunked").strip().lower()
        if coding != b"chunked":
            raise BadAnswer(f'a transfer-encoding of "{coding.decode("latin-1")}"')
        coding = answer.headers.get(b"content-encoding", b"identity").strip().lower()
        if coding == b"gzip" and not answer.is_stream:  # of a stream nobody asks for it
            answer.coding = None if status == _NO_BODY else zlib.decompressobj(_GZIP)
        elif coding != b"identity":
            raise BadAnswer(f'a content-encoding of "{coding.decode("latin-1")}"')
        answer.status = status
        answer.tell()

    def on_body(self, data: bytes) -> None:
        self._head_bytes = 0
        if self._answer is not None:
            self._answer.add(data)

    def on_message_complete(self) -> None:
        if self._is_interim:
            return
        self._is_kept_alive = self._parser.should_keep_alive()
        if self._answer is not None:
            self._answer.end()


def _ends_with_connection(answer: Answer) -> bool:
    return b"content-length" not in answer.headers and b"transfer-encoding" not in answer.headers
