"""HTTP/2 on a unix socket, as far as gRPC needs it: both sides, on the h2 library.

h2 knows frames and states and does no I/O. `Connection` moves bytes between it and the socket, and
gives every stream what belongs to it. What arrives is acknowledged only when it was taken, so a
peer that talks for ever is stopped by flow control, with at most one message and one window in
memory.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from kubeclient.kubeletapi.errors import RpcFailed
from kubeclient.kubeletapi.framing import Headers, Messages
from kubeclient.kubeletapi.goodbyes import Frames, Goodbye

_WINDOW_BYTES = 1024 * 1024
_MOST_STREAMS = 100
_MOST_HEADER_BYTES = 16 * 1024
# Messages wait for room in the socket. Answers to the other side's frames cannot, so a peer that
# asks and does not read is cut off.
_MOST_UNSENT_BYTES = 4 * 1024 * 1024

Opened = Callable[["Stream"], None]


class Connection(asyncio.Protocol):
    """`opened` is told of streams that the other side opens; None: this side is the client."""

    def __init__(self, most_bytes: int, opened: Opened | None = None) -> None:
        self._most_bytes = most_bytes
        self._opened = opened
        is_client = opened is None
        self._h2 = H2Connection(_configuration(is_client))
        self._h2.local_settings = Settings(is_client, _our_settings(is_client))
        self._transport: asyncio.Transport | None = None
        self._streams: dict[int, Stream] = {}
        self._changed = asyncio.Event()  # more may be sent now, perhaps
        self._is_full = False  # the socket's buffer
        self._frames = Frames()
        self.is_leaving = False  # the server takes no new calls, and answers those in progress
        self.is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self.is_over:  # closed when only the event loop knew its socket
            self._transport.abort()
            return
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW_BYTES)
        self._flush()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.add(data) if self._opened is None else (data,):
                self._receive(frame)
        # UnicodeDecodeError: of headers that are no text.
        except (H2Error, UnicodeDecodeError):
            self.close()
        self._flush()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        self._fail_after(0)

    def close(self) -> None:
        """Sends what is to be sent, then ends. Calls in progress fail."""
        self.is_over = True
        if self._transport is not None:
            self._flush()
            self._transport.close()
        # The transport waits for a peer that does not read; the calls do not.
        self._fail_after(0)

    def open(self, headers: Headers) -> "Stream":
        """A stream of the client. Raises RpcFailed."""
        if self.is_over:
            raise _gone()
        try:
            stream = self._stream(self._h2.get_next_available_stream_id(), headers)
            self._h2.send_headers(stream.number, headers)
        except H2Error as error:
            raise RpcFailed("Unavailable", f"{type(error).__name__}: {error}") from error
        self._flush()
        return stream

    async def send(self, number: int, data: bytes, *, is_last: bool = False) -> None:
        """Waits while the other side takes no more. Raises RpcFailed."""
        left = memoryview(data)
        while left:
            size = min(len(left), self._room(number))
            if size:
                part, left = left[:size], left[size:]
                self._act(number, self._h2.send_data, bytes(part), is_last and not left)
            else:
                await self._changed.wait()

    def send_headers(self, number: int, headers: Headers, *, is_last: bool = False) -> None:
        """Raises RpcFailed."""
        self._act(number, self._h2.send_headers, headers, is_last)

    def acknowledge(self, number: int, size: int) -> None:
        if size and not self.is_over:
            self._h2.acknowledge_received_data(size, number)
            self._flush()

    def forget(self, stream: "Stream") -> None:
        """Nobody is interested in it any more: if it goes on, it is cut."""
        self._streams.pop(stream.number, None)
        self.acknowledge(stream.number, stream.unread)
        if not (self.is_over or stream.is_over):
            # After a server's answer, no error: the answer counts (RFC 9113, 8.1).
            is_answered = self._opened is not None and stream.is_sent
            why = ErrorCodes.NO_ERROR if is_answered else ErrorCodes.CANCEL
            # The other side may have ended it meanwhile.
            with contextlib.suppress(H2Error):
                self._h2.reset_stream(stream.number, why)
            self._flush()
        if self.is_leaving and not self._streams:
            self.close()

    def _room(self, number: int) -> int:
        """How much may be sent now."""
        if self.is_over or number not in self._streams:
            raise _gone()
        if self._is_full:
            self._changed.clear()
            return 0
        try:
            window = self._h2.local_flow_control_window(number)
        except H2Error as error:
            raise _gone() from error
        if window <= 0:
            self._changed.clear()
        return max(0, min(window, self._h2.max_outbound_frame_size))

    def _act(self, number: int, what: Callable[..., None], *given: object) -> None:
        if self.is_over:
            raise _gone()
        try:
            what(number, *given)
        except H2Error as error:  # the other side has ended the stream, or the connection
            raise _gone() from error
        self._flush()

    def _stream(self, number: int, headers: Headers) -> "Stream":
        self._streams[number] = Stream(self, number, headers, Messages(self._most_bytes))
        return self._streams[number]

    def _receive(self, frame: bytes | Goodbye) -> None:
        if isinstance(frame, Goodbye):
            self.is_leaving = True
            self._fail_after(frame.last)
            return
        for event in self._h2.receive_data(frame):
            self._take(event)

    def _fail_after(self, number: int) -> None:
        for stream in list(self._streams.values()):
            if stream.number > number:
                stream.fail(_gone())
        self._tell()

    def _take(self, event: Event) -> None:
        number = getattr(event, "stream_id", None)
        stream = self._streams.get(number) if number else None
        match event:
            case RequestReceived() if self._opened is not None:
                self._opened(self._stream(event.stream_id, _texts(event)))
            case ResponseReceived() | TrailersReceived() if stream is not None:
                stream.headers = _texts(event)
            case DataReceived() if stream is not None:
                stream.add(event.data, event.flow_controlled_length)
            case DataReceived():
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case StreamEnded() if stream is not None:
                stream.end()
            case StreamReset() if stream is not None:
                stream.fail(RpcFailed("Canceled", "the other side has ended the call"))
            case ConnectionTerminated():
                # From here on h2 takes nothing: calls in progress are lost with the connection.
                self.close()
            case _:
                pass
        self._tell()

    def _tell(self) -> None:
        self._changed.set()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > _MOST_UNSENT_BYTES:
                self.is_over = True
                self._transport.abort()


class Stream:
    """One call: what has arrived of it."""

    def __init__(
        self, connection: Connection, number: int, headers: Headers, messages: Messages
    ) -> None:
        self.number = number
        self.headers = headers  # the newest: of the request or the answer, or the trailers
        self.unread = 0  # bytes that the other side must not yet replace by others
        self.has_ended = False  # the other side has said its last
        self.is_sent = False  # this side has
        self.failed: Callable[[], None] = lambda: None  # told when the other side gives up
        self._connection = connection
        self._messages = messages
        self._complete: deque[bytes] = deque()
        self._failure: RpcFailed | None = None
        self._arrived = asyncio.Event()

    async def message(self) -> bytes | None:
        """The next; None: there are no more. Raises RpcFailed."""
        while not self._complete:
            if self._failure is not None:
                raise self._failure
            if self.has_ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        message = self._complete.popleft()
        self._take_more()
        return message

    async def send(self, data: bytes, *, is_last: bool = False) -> None:
        await self._connection.send(self.number, data, is_last=is_last)
        self.is_sent = is_last

    def send_headers(self, headers: Headers, *, is_last: bool = False) -> None:
        self._connection.send_headers(self.number, headers, is_last=is_last)
        self.is_sent = is_last

    @property
    def is_over(self) -> bool:
        """Both sides have said their last."""
        return self.has_ended and self.is_sent

    def forget(self) -> None:
        self._connection.forget(self)

    def add(self, data: bytes, size: int) -> None:
        self.unread += size
        if self._failure is None:
            try:
                self._complete += self._messages.add(data)
            except RpcFailed as error:
                self._failure = error
        self._take_more()
        self._arrived.set()

    def end(self) -> None:
        self.has_ended = True
        if not self._messages.is_between and self._failure is None:
            self._failure = RpcFailed("Internal", "the call ends within a message")
        self._arrived.set()

    def fail(self, error: RpcFailed) -> None:
        """The other side has cut the stream. If it had said its last before, that counts."""
        if not self.has_ended:
            self._failure = self._failure or error
        self.has_ended = self.is_sent = True
        self._arrived.set()
        self.failed()

    def _take_more(self) -> None:
        """While a message waits to be read, no more than the window may follow."""
        if not self._complete and not self.has_ended:
            size, self.unread = self.unread, 0
            self._connection.acknowledge(self.number, size)


def _gone() -> RpcFailed:
    return RpcFailed("Unavailable", "the other side has ended the connection")


def _configuration(is_client: bool) -> H2Configuration:
    # Go's servers send the words of errors as they are, with blanks at their ends; h2 would end the
    # connection for that. Headers that mean nothing here are not looked at.
    return H2Configuration(
        client_side=is_client, header_encoding="utf-8", validate_inbound_headers=not is_client
    )


def _our_settings(is_client: bool) -> dict[SettingCodes, int]:
    settings: dict[SettingCodes, int] = {
        SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
        SettingCodes.MAX_CONCURRENT_STREAMS: _MOST_STREAMS,
        SettingCodes.MAX_HEADER_LIST_SIZE: _MOST_HEADER_BYTES,
    }
    return settings | ({SettingCodes.ENABLE_PUSH: 0} if is_client else {})


def _texts(event: RequestReceived | ResponseReceived | TrailersReceived) -> Headers:
    return [(str(name), str(value)) for name, value in event.headers]
