"""The other end of NRI: a container runtime, as far as a plugin sees it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

from kubeclient.nri.channel import (
    PLUGIN_SERVICE,
    REQUEST,
    RESPONSE,
    Incoming,
    Message,
    framed,
)
from kubeclient.nri.messages import RegisterPluginRequest, Request, Response, Status
from kubeclient.wire import decode, encode

_Answer = TypeVar("_Answer")


class Runtime:
    """One plugin, after it has connected."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._incoming = Incoming()
        self._last = -1

    async def accept_registration(self) -> RegisterPluginRequest:
        message = await self.receive()
        await self.send(message._replace(type=RESPONSE, data=encode(Response(Status()))))
        return decode(RegisterPluginRequest, decode(Request, message.data).payload)

    async def ask(self, method: str, request: Any, answer: type[_Answer]) -> _Answer:
        response = await self.ask_raw(method, encode(request))
        assert not (response.status and response.status.code), response.status
        return decode(answer, response.payload)

    async def ask_raw(self, method: str, payload: bytes) -> Response:
        self._last += 2
        request = encode(Request("nri.pkg.api.v1alpha1.Plugin", method, payload))
        await self.send(Message(PLUGIN_SERVICE, self._last, REQUEST, request))
        message = await self.receive()
        assert (message.stream, message.type) == (self._last, RESPONSE)
        return decode(Response, message.data)

    async def send(self, message: Message) -> None:
        self.writer.write(framed(message))
        await self.writer.drain()

    async def receive(self) -> Message:
        while data := await self.reader.read(65536):
            for message in self._incoming.feed(data):
                return message  # a plugin never sends two without being asked again
        raise EOFError


@contextlib.asynccontextmanager
async def listening(socket: Path) -> AsyncIterator["asyncio.Queue[Runtime]"]:
    """Every plugin that connects goes into the queue."""
    connected: asyncio.Queue[Runtime] = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        connected.put_nowait(Runtime(reader, writer))

    server = await asyncio.start_unix_server(accept, str(socket))
    try:
        yield connected
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
