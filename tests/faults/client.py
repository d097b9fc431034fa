"""A small HTTPS client for tests that break things: an answer, or the news that there is none."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import orjson

from kubeclient.objects import Obj
from tests.faults.api_child import TOKEN, ApiChild
from tests.localkube.apiserver.http.wire_client import Answered, Wire

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"

# However a connection to a dead server ends.
Cut = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)


class Client:
    """One connection, one request at a time."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    async def call(self, method: str, path: str, body: Any = None, **query: str) -> Answered:
        """Raises one of Cut."""
        raw = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        url = f"{path}?{urlencode(query)}" if query else path
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = (f"Authorization: Bearer {TOKEN}", f"Content-Type: {media}")
        self.wire.request(method, url, *headers, body=raw)
        return await self.wire.answer()

    async def get(self, path: str, **query: str) -> Obj:
        answer = await self.call("GET", path, **query)
        assert answer.status == 200, answer.body
        found: Obj = orjson.loads(answer.body)
        return found

    async def events(self, path: str, **query: str) -> AsyncIterator[Obj]:
        """Of a watch. Ends when the server ends it; raises one of Cut when that dies."""
        url = f"{path}?{urlencode({**query, 'watch': 'true'})}"
        self.wire.request("GET", url, f"Authorization: Bearer {TOKEN}")
        head = await self.wire.head()
        assert head.status == 200
        rest = b""
        async for chunk in self.wire.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield orjson.loads(line)


@asynccontextmanager
async def connected(child: ApiChild) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", child.port, ssl=child.trust())
    wire = Wire(reader, writer)
    try:
        yield Client(wire)
    finally:
        await wire.leave()
