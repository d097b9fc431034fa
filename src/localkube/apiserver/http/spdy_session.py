"""A server's SPDY session inside a WebSocket: streams that can be read, written and ended.

What clients have sent and nobody has read yet is limited for the session as a whole. Past the limit
we stop receiving, so one stream that nobody reads holds up the others; kubectl's own end does the
same.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from kubeclient.turns import Turns
from localkube.apiserver.http import spdy
from localkube.apiserver.request import WebSocket

_STREAMS = 256
_UNREAD = 1024 * 1024


class SpdyStream:
    """One stream that the client has opened."""

    def __init__(self, session: "SpdySession", id: int, headers: Mapping[str, str]) -> None:
        self.id = id
        self.headers = headers
        self._session = session
        self._unread: deque[bytes] = deque()
        self._has_ended = False  # the client sends no more
        self._is_ignored = False  # we read no more
        self._is_closed = False  # we send no more
        self._change = asyncio.Event()

    async def read(self) -> bytes:
        """Some bytes; empty when the client sends no more or has given the stream up."""
        while not self._unread:
            if self._has_ended:
                return b""
            self._change.clear()
            await self._change.wait()
        data = self._unread.popleft()
        self._session.has_read(len(data))
        return data

    async def write(self, data: bytes) -> None:
        """Raises ConnectionResetError when the client has given up the stream or has left."""
        for start in range(0, len(data), spdy.DATA_FRAME):
            if self._is_closed:
                raise ConnectionResetError("the client has reset the stream")
            await self._session.send(spdy.data(self.id, data[start : start + spdy.DATA_FRAME]))

    async def close_write(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._session.send(spdy.last(self.id))
            self._session.forget_if_done(self)

    async def reset(self) -> None:
        if not self.is_done:
            self.give_up()
            self._session.forget_if_done(self)
            await self._session.send(spdy.reset(self.id, spdy.CANCEL))

    @property
    def is_done(self) -> bool:
        return self._has_ended and self._is_closed

    def take(self, data: bytes) -> None:
        if not self._has_ended and not self._is_ignored:
            self._unread.append(data)
            self._session.has_received(len(data))
            self._change.set()

    def end_input(self) -> None:
        self._has_ended = True
        self._change.set()

    def give_up(self) -> None:
        """Nothing goes either way any more, not even what has arrived."""
        self._is_closed = True
        self.ignore_input()
        self.end_input()

    def ignore_input(self) -> None:
        """Discards what the client sends: unread bytes would block the other streams."""
        self._is_ignored = True
        self._session.has_read(sum(map(len, self._unread)))
        self._unread.clear()


class SpdySession:
    """Guards the number of streams and of unread bytes."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._reader = spdy.FrameReader()
        self._writer = spdy.ReplyWriter()
        self._streams: dict[int, SpdyStream] = {}
        self._last_stream = 0
        self._unread = 0
        self._room = asyncio.Event()
        self._room.set()

    async def run(self, opened: Callable[[SpdyStream], bool]) -> None:
        """Until the client leaves. `opened` says whether a new stream is welcome."""
        turns = Turns()
        try:
            while (message := await self._socket.receive()) is not None:
                raw = message.encode() if isinstance(message, str) else message
                for frame in self._reader.feed(raw):
                    if frame is not None:
                        await self._take(frame, opened)
                    # One message may have millions of frames.
                    await turns.next()
                    # The limit counts all streams together: nothing more is read from the client
                    # until it has room.
                    await self._room.wait()
        except spdy.SpdyError:
            await self.send(spdy.go_away(self._last_stream, spdy.PROTOCOL_ERROR))
        finally:
            for stream in self._streams.values():
                stream.give_up()
            self._streams.clear()

    async def send(self, frames: bytes) -> None:
        await self._socket.send(frames)

    async def _take(self, frame: spdy.Frame, opened: Callable[[SpdyStream], bool]) -> None:
        match frame:
            case spdy.SynStream():
                await self._open(frame, opened)
            case spdy.Data():
                await self._take_data(frame)
            case spdy.Reset():
                gone = self._streams.pop(frame.stream, None)
                if gone is not None:
                    gone.give_up()
            case spdy.Ping():
                if frame.id % 2:  # even ones would answer a ping of ours
                    await self.send(spdy.ping(frame.id))

    async def _open(self, frame: spdy.SynStream, opened: Callable[[SpdyStream], bool]) -> None:
        if frame.stream % 2 == 0 or frame.stream <= self._last_stream:
            raise spdy.SpdyError("stream ids must be odd and grow")
        self._last_stream = frame.stream
        stream = SpdyStream(self, frame.stream, frame.headers)
        if len(self._streams) >= _STREAMS or not opened(stream):
            await self.send(spdy.reset(frame.stream, spdy.REFUSED_STREAM))
            return
        self._streams[frame.stream] = stream
        if frame.is_last:
            stream.end_input()
        await self.send(self._writer.syn_reply(frame.stream))

    async def _take_data(self, frame: spdy.Data) -> None:
        stream = self._streams.get(frame.stream)
        if stream is None:
            return  # given up or ended by us while this was on its way
        if frame.data:
            stream.take(frame.data)
        if frame.is_last:
            stream.end_input()
            self.forget_if_done(stream)

    def forget_if_done(self, stream: SpdyStream) -> None:
        if stream.is_done:
            self._streams.pop(stream.id, None)

    def has_received(self, size: int) -> None:
        self._unread += size
        if self._unread > _UNREAD:
            self._room.clear()

    def has_read(self, size: int) -> None:
        self._unread -= size
        if self._unread <= _UNREAD // 2:
            self._room.set()
