"""A client that sends exactly the bytes it is told to, and reads answers strictly."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.server import Server, serve
from localkube.apiserver.request import Handler

PATIENCE_S = 20.0
USUAL = WireLimits()
# Short, so that tests of time-outs take no time; long enough for a busy machine.
QUICK = WireLimits(
    head_timeout_s=0.4, body_timeout_s=0.4, idle_timeout_s=0.4, stall_timeout_s=0.4, linger_s=0.1
)


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = self.all(name)
        return found[0] if found else None

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *parts: bytes | str) -> None:
        for part in parts:
            self.writer.write(part.encode() if isinstance(part, str) else part)

    def request(self, method: str, path: str, *headers: str, body: bytes | None = None) -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines) + "\r\n\r\n", body or b"")

    async def head(self) -> Answered:
        async with asyncio.timeout(PATIENCE_S):
            raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = raw[:-4].split("\r\n")
        pairs = [(name, value.strip()) for name, _, value in (x.partition(":") for x in lines)]
        return Answered(int(first.split(" ")[1]), pairs, b"")

    async def answer(self, *, to_head: bool = False) -> Answered:
        head = await self.head()
        async with asyncio.timeout(PATIENCE_S):
            if to_head or head.status in (100, 204, 304):
                body = b""
            elif head.header("transfer-encoding") == "chunked":
                body = b"".join([chunk async for chunk in self.chunks()])
            else:
                length = head.header("content-length")
                assert length is not None
                body = await self.reader.readexactly(int(length))
        return Answered(head.status, head.headers, body)

    async def chunk(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = await self.reader.readexactly(size + 2)
        assert data.endswith(b"\r\n")
        return data[:-2]

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self.chunk():
            yield chunk

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionError):
                return await self.reader.read()
            return b""

    async def leave(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


@asynccontextmanager
async def connected(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
    wire = Wire(reader, writer)
    try:
        yield wire
    finally:
        await wire.leave()


@asynccontextmanager
async def serving(
    handler: Handler, limits: WireLimits = USUAL, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = await serve(handler, ssl_context=tls, limits=limits)
    try:
        yield server
    finally:
        await server.close(grace_s=0.2)


@asynccontextmanager
async def wired(handler: Handler, limits: WireLimits = USUAL) -> AsyncIterator[Wire]:
    """A server, and a connection to it."""
    async with serving(handler, limits) as server, connected(server) as wire:
        yield wire


async def eventually(condition: Callable[[], bool]) -> None:
    """For what happens in the server without a sign on the wire."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
