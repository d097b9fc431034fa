"""A webhook that does with its connections whatever a test wants, byte by byte."""

import asyncio
import base64
import contextlib
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from kubeclient.objects import Obj
from tests.localkube.apiserver.admission.webhook_server import (
    WebhookServer,
    key_pair,
    server_context,
)

PIECE = b" " * 65_536


@dataclass
class Call:
    """One request to the webhook, and its connection."""

    uid: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()
        await asyncio.sleep(0)  # drain does not wait while there is room, so nobody else would run

    async def gone(self) -> None:
        """Until the API server hangs up."""
        await self.reader.read()

    def head(self, length: int, *more: str) -> bytes:
        lines = ("HTTP/1.1 200 OK", "Content-Type: application/json", *more)
        return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()

    def review(self, **response: object) -> bytes:
        return orjson.dumps(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": self.uid, "allowed": True, **response},
            }
        )

    async def answer(self, body: bytes, *more: str) -> None:
        await self.send(self.head(len(body), *more), body)


Behave = Callable[[Call], Awaitable[None]]


@dataclass
class Hostile(WebhookServer):
    calls: asyncio.Queue[Call] = field(default_factory=asyncio.Queue)


async def _called(
    hostile: Hostile, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Call:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    document = orjson.loads(await reader.readexactly(length))
    call = Call(document["request"]["uid"], reader, writer)
    hostile.calls.put_nowait(call)
    return call


@asynccontextmanager
async def hostile(behave: Behave, *, tls: bool = True) -> AsyncIterator[Hostile]:
    """Without TLS it accepts connections and says nothing."""
    found = Hostile(ca_bundle=base64.b64encode(key_pair()[0]).decode())
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            if tls:
                await behave(await _called(found, reader, writer))
            else:
                await reader.read()
        writer.close()

    context = server_context() if tls else None
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context, backlog=512)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # With TLS, `close` waits for an answer of the peer, longer than the test lives.
        for writer in writers:
            with contextlib.suppress(AttributeError):  # Python 3.11.2, if it is closed already
                writer.transport.abort()
        await asyncio.sleep(0)


def patched(*operations: Obj) -> dict[str, object]:
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return {"patchType": "JSONPatch", "patch": patch}


def bomb() -> bytes:
    """Half a gigabyte of blanks in half a megabyte."""
    piece = gzip.compress(b" " * (1 << 24))
    return piece * 32
