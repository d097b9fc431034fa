"""An API server in this process, whose loop is watched while it answers one request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.heavy import Heavy
from localkube.apiserver.request import Answer, Request, Stream, User
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from tests.conformance.api_server import NoNodes
from tests.faults.in_process import certificates_for_tests
from tests.faults.loop_watchdog import Watchdog


class Watched:
    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def call(self, heavy: Heavy, user: User = ADMIN) -> tuple[int, bytes]:
        path, _, query = heavy.path.partition("?")
        headers = {"content-type": heavy.media, "accept": heavy.accept, "user-agent": "tests"}
        request = Request(
            method=heavy.method,
            path=path,
            query_string=query,
            headers=headers,
            body=heavy.body,
            user=user,
        )
        reply = await self.server.app.handle(request)
        if isinstance(reply, Stream):
            return reply.status, b"".join([chunk async for chunk in reply.chunks])
        assert isinstance(reply, Answer)
        body = reply.body
        return reply.status, body if isinstance(body, bytes) else b"".join(body)

    async def watched(self, heavy: Heavy, user: User = ADMIN) -> tuple[int, bytes]:
        """The answer; fails if anything kept the loop while it was made. In a task of its own: what
        the running callback does before it first waits is seen by no watchdog that it starts."""
        with Watchdog().watching() as watchdog:
            answer = await asyncio.create_task(self.call(heavy, user))
        assert not watchdog.stalls, "\n".join(watchdog.stalls)
        return answer

    async def make(self, path: str, body: bytes) -> None:
        status, answer = await self.call(Heavy("POST", path, body))
        assert status == 201, answer[:500]


@asynccontextmanager
async def watched_server(directory: Path) -> AsyncIterator[Watched]:
    server = build(directory, certificates_for_tests(), StaticTokens(), NoNodes())
    watched = Watched(server)
    for name in ("default", "many"):
        await watched.make("/api/v1/namespaces", b'{"metadata":{"name":"%s"}}' % name.encode())
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        await watched.make(path, b'{"metadata":{"name":"default"}}')
    try:
        yield watched
    finally:
        await server.end()
