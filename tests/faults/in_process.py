"""Our API server without sockets: requests in, answers and watch events out, on its own loop."""

import asyncio
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.request import Answer, Reply, Request, Stream
from localkube.apiserver.security import certificates
from localkube.apiserver.security.certificates import Certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from tests.conformance.api_server import NoNodes

JSON = "application/json"
_ROUNDS = 200  # of the event loop: far more than an event needs to reach its watcher


@cache
def certificates_for_tests() -> Certificates:
    with tempfile.TemporaryDirectory() as directory:
        return certificates.ensure(Path(directory))


class Following:
    """What one watch has said so far."""

    def __init__(self, stream: Stream) -> None:
        self.events: list[Obj] = []
        self._chunks = stream.chunks
        self._task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for chunk in self._chunks:
            self.events += [orjson.loads(line) for line in chunk.splitlines()]

    @property
    def is_over(self) -> bool:
        return self._task.done()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._chunks.aclose()  # type: ignore[attr-defined]  # a generator: it has one


class Served:
    """An API server with two namespaces; nobody but the test talks to it."""

    def __init__(self, directory: Path, namespaces: tuple[str, ...]) -> None:
        self.loop = asyncio.new_event_loop()
        self._server = self.loop.run_until_complete(_built(directory))
        for name in namespaces:
            self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            path = f"/api/v1/namespaces/{name}/serviceaccounts"
            self.call("POST", path, {"metadata": {"name": "default"}})

    async def handle(self, request: Request) -> Reply:
        return await self._server.app.handle(request)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        media: str = JSON,
    ) -> tuple[int, Obj]:
        return self.loop.run_until_complete(self.acall(method, path, body, query or {}, media))

    async def acall(
        self, method: str, path: str, body: Any, query: Mapping[str, str], media: str = JSON
    ) -> tuple[int, Obj]:
        answer = await self._server.app.handle(_request(method, path, body, query, media))
        assert isinstance(answer, Answer)
        raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        return answer.status, orjson.loads(raw) if answer.content_type == JSON else {}

    def watch(self, path: str, query: Mapping[str, str]) -> Following:
        return self.loop.run_until_complete(self.awatch(path, query))

    async def awatch(self, path: str, query: Mapping[str, str]) -> Following:
        query = {**query, "watch": "true"}
        stream = await self._server.app.handle(_request("GET", path, None, query, JSON))
        assert isinstance(stream, Stream)
        return Following(stream)

    def wait_for(self, following: Following, count: int) -> None:
        """Until the watch has said so much, or will not say more."""
        self.loop.run_until_complete(_wait_for(following, count))

    def stop(self, following: Following) -> None:
        self.loop.run_until_complete(following.stop())

    def close(self) -> None:
        self._server.close()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


async def _built(directory: Path) -> ApiServer:
    return build(directory, certificates_for_tests(), StaticTokens(), NoNodes())


async def _wait_for(following: Following, count: int) -> None:
    for _ in range(_ROUNDS):
        if len(following.events) >= count:
            break
        await asyncio.sleep(0)
    for _ in range(3):  # and nothing more than that
        await asyncio.sleep(0)


def _request(method: str, path: str, body: Any, query: Mapping[str, str], media: str) -> Request:
    return Request(
        method=method,
        path=path,
        query_string=urlencode(query),
        headers={"content-type": media, "user-agent": "model"},
        body=b"" if body is None else orjson.dumps(body),
        user=ADMIN,
    )
