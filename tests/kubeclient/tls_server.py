"""A TLS server on the loopback whose every answer is written by the test, byte for byte."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from kubeclient.access import Access, trust
from localkube.apiserver.security.certificates import ensure, server_context

# What one connection's requests are answered with; called once for each, with its first line.
Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


def plain(status: int, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@contextlib.asynccontextmanager
async def tls_server(directory: Path, answer: Answer) -> AsyncIterator[Access]:
    made = ensure(directory)
    open_writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        await reader.readexactly(int(line.split(b":")[1]))
                await answer(head.split(b"\r\n")[0], writer)
                await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_context(made))
    port = server.sockets[0].getsockname()[1]
    try:
        yield Access(f"https://127.0.0.1:{port}", trust(made.ca_pem.decode()))
    finally:
        server.close()
        for writer in open_writers:
            writer.transport.abort()
