"""A TLS server on the loopback whose every answer is written by the test, byte for byte."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from kubeclient.access import Access, trust
from kubeclient.client import Kube
from kubeclient.https import Https
from localkube.apiserver.security.certificates import ensure, server_context

# What one connection's requests are answered with; called once for each, with its first line.
Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def plain(status: int, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@contextlib.asynccontextmanager
async def tls_server(
    directory: Path, answer: Answer, *, serve: Serve | None = None
) -> AsyncIterator[Access]:
    """`serve`: reads the requests too."""
    made = ensure(directory)
    open_writers: list[asyncio.StreamWriter] = []

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        await reader.readexactly(int(line.split(b":")[1]))
                await answer(head.split(b"\r\n")[0], writer)
                await writer.drain()

    async def serving(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.append(writer)
        await (serve or answering)(reader, writer)

    server = await asyncio.start_server(serving, "127.0.0.1", 0, ssl=server_context(made))
    port = server.sockets[0].getsockname()[1]
    try:
        yield Access(f"https://127.0.0.1:{port}", trust(made.ca_pem.decode()))
    finally:
        server.close()
        for writer in open_writers:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def served(directory: Path, answer: Answer) -> AsyncIterator[tuple[Kube, Https]]:
    async with tls_server(directory, answer) as access:
        transport = Https(access, "test", limit_s=20.0)
        try:
            yield Kube(transport), transport
        finally:
            await transport.close()


def says(*answers: bytes, then_close: bool = True) -> tuple[Answer, list[bytes]]:
    """A server that gives these answers, the last one again and again; and what it was asked."""
    asked: list[bytes] = []

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(line)
        writer.write(answers[min(len(asked), len(answers)) - 1])
        if then_close:
            await writer.drain()
            writer.close()

    return answer, asked
