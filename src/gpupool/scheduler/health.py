"""Health and metrics over HTTP, at kube-scheduler's paths."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from aiohttp import web


class Address(NamedTuple):
    host: str
    port: int


def health_routes(is_ready: Callable[[], bool], metrics: Callable[[], str]) -> list[web.RouteDef]:
    """Alive as long as it answers; ready when `is_ready` says so."""

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="not ready\n")

    async def measured(_: web.Request) -> web.Response:
        return web.Response(text=metrics(), headers={"Content-Type": "text/plain; version=0.0.4"})

    return [
        web.get("/healthz", alive),
        web.get("/livez", alive),
        web.get("/readyz", ready),
        web.get("/metrics", measured),
    ]


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, address: Address, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """The port. Raises OSError when the address is taken."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host, address.port, ssl_context=tls)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
