"""A WebSocket client by wsproto, frame by frame."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from localkube.apiserver.http.server import Server
from tests.localkube.apiserver.http.wire_client import PATIENCE_S, Wire, connected


class Rejected(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class WebSocketClient:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.subprotocol: str | None = None
        self.close_code: int | None = None
        self._frames = WSConnection(ConnectionType.CLIENT)
        self._events: list[Event] = []

    async def open(self, path: str, subprotocols: Sequence[str]) -> None:
        self._put(Request(host="localhost", target=path, subprotocols=list(subprotocols)))
        event = await self.event()
        if isinstance(event, RejectConnection):
            body = b""
            while event.has_body:
                data = await self.event()
                assert isinstance(data, RejectData)
                body += data.data
                if data.body_finished:
                    break
            raise Rejected(event.status_code, body)
        assert isinstance(event, AcceptConnection)
        self.subprotocol = event.subprotocol

    def _put(self, event: Event) -> None:
        self.wire.send(self._frames.send(event))

    def send(self, data: bytes | str, *, finished: bool = True) -> None:
        self._put(
            BytesMessage(data, message_finished=finished)
            if isinstance(data, bytes)
            else TextMessage(data, message_finished=finished)
        )

    def ping(self, payload: bytes) -> None:
        self._put(Ping(payload))

    def close(self, code: int = 1000) -> None:
        self._put(CloseConnection(code))

    async def event(self) -> Event:
        while not self._events:
            async with asyncio.timeout(PATIENCE_S):
                data = await self.wire.reader.read(1 << 16)
            self._frames.receive_data(data or None)
            self._events = list(self._frames.events())
        return self._events.pop(0)

    async def receive(self) -> bytes | str | None:
        """The next message; None after the server's close, whose code is then in `close_code`."""
        parts: list[bytes] = []
        while True:
            event = await self.event()
            if isinstance(event, CloseConnection):
                self.close_code = event.code
                return None
            if isinstance(event, TextMessage):
                assert event.frame_finished
                return event.data
            if isinstance(event, BytesMessage):
                parts.append(bytes(event.data))
                if event.message_finished:
                    return b"".join(parts)

    async def pong(self) -> bytes:
        event = await self.event()
        assert isinstance(event, Pong)
        return bytes(event.payload)


@asynccontextmanager
async def websocket(
    server: Server, path: str = "/", subprotocols: Sequence[str] = ()
) -> AsyncIterator[WebSocketClient]:
    async with connected(server) as wire:
        client = WebSocketClient(wire)
        await client.open(path, subprotocols)
        yield client
