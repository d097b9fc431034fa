"""Another API server: it answers for a group version, and keeps what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from localkube.apiserver.security.certificates import Certificates
from tests.localkube.apiserver.admission.webhook_server import key_pair

RESOURCES = [
    {"name": "toys", "singularName": "toy", "namespaced": True, "kind": "Toy", "verbs": ["list"]},
    {
        "name": "toys/status",
        "singularName": "",
        "namespaced": True,
        "kind": "Toy",
        "verbs": ["get"],
    },
]
PIECE = b"x" * 65_536
LIST = {"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": RESOURCES}


@dataclass
class Other:
    port: int = 0
    asked: list[web.Request] = field(default_factory=list)  # by users
    checked: list[str] = field(default_factory=list)  # paths at which it was asked if it is there
    peers: list[Any] = field(default_factory=list)
    sent: int = 0  # of huge answers

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("X-Remote-User") == "system:kube-aggregator":
            self.checked.append(request.path)
        else:
            self.asked.append(request)
        assert request.transport is not None
        self.peers.append(request.transport.get_extra_info("peercert"))
        if request.path == "/apis/example.com/v1":
            return web.json_response(LIST)
        if "watch" in request.query:
            stream = web.StreamResponse(headers={"Content-Type": "application/json"})
            await stream.prepare(request)
            for number in range(3):
                await stream.write(b'{"type":"ADDED","object":{"n":%d}}\n' % number)
            return stream
        if request.path.endswith("/huge"):
            return await self._huge(request)
        body = {"sent": (await request.read()).decode(), "where": request.path_qs}
        return web.json_response(body, status=418, headers={"Warning": '299 - "w"'})

    async def _huge(self, request: web.Request) -> web.StreamResponse:
        """As many pieces as are asked for; it may promise more than it sends."""
        pieces, promised = int(request.query["pieces"]), int(request.query.get("promised", 0))
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        if promised:
            stream.content_length = promised
        await stream.prepare(request)
        for _ in range(pieces):
            await stream.write(PIECE)
            self.sent += len(PIECE)
        if promised and request.transport is not None:
            request.transport.abort()
        return stream


@asynccontextmanager
async def answering(made: Certificates, folder: Path) -> AsyncIterator[Other]:
    """Talks only to who shows the front-proxy certificate, as such servers do."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for name, pem in zip(("other.crt", "other.key"), key_pair(), strict=True):
        (folder / name).write_bytes(pem)
    context.load_cert_chain(folder / "other.crt", folder / "other.key")
    context.load_verify_locations(cadata=made.front_proxy_ca_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    other = Other()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", other.answer)
    runner, before = web.AppRunner(app, shutdown_timeout=0.1), _sockets()
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    other.port = runner.addresses[0][1]
    try:
        yield other
    finally:
        for _ in range(5):  # as `_close_soon` of webhook_route.py
            await asyncio.sleep(0)
        await runner.cleanup()
        # aiohttp does not know of a connection that has ended within its TLS handshake.
        async with asyncio.timeout(60):
            while _sockets() > before:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


def _sockets() -> int:
    """How many this process has open."""
    return sum(map(_is_socket, Path("/proc/self/fd").iterdir()))


def _is_socket(file: Path) -> bool:
    try:
        return str(file.readlink()).startswith("socket:")
    except FileNotFoundError:  # that of the directory itself
        return False
