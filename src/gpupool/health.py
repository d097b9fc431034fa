"""Serves HTTP for all programs, and the endpoints for health and metrics that they share.

Every program has a metrics registry of its own. The global registry of prometheus_client is never
used: a local cluster runs hundreds of agents in one process, and their metrics must not mix.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, cast

from aiohttp import web

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

LOOPBACK = "127.0.0.1"
LOOPBACKS = (LOOPBACK, "::1", "localhost")
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FIRST_REQUEST_LIMIT_S = 10.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Address(NamedTuple):
    host: str
    port: int  # 0: any free port


class _Families:
    """A collector of ready-made metric families."""

    def __init__(self, families: "list[Metric]") -> None:
        self._families = families

    def collect(self) -> "Iterable[Metric]":
        return self._families


def metrics_text(metrics: "Collector") -> str:
    """The metrics of one registry or collector in the Prometheus text format.

    Without the `_created` samples, which prometheus_client adds to counters and histograms. The
    library can also turn them off, but only for the whole process.
    """
    from prometheus_client import generate_latest  # admission has health, but no metrics

    families = list(metrics.collect())
    for family in families:
        family.samples = [each for each in family.samples if not each.name.endswith("_created")]
    return generate_latest(cast("Collector", _Families(families))).decode()


def health_routes(is_ready: Callable[[], bool] = lambda: True) -> list[web.RouteDef]:
    """Liveness and readiness at the paths of kube-scheduler.

    A program is alive as long as it answers, and ready while `is_ready` returns true.
    """

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="not ready\n")

    return [web.get("/healthz", alive), web.get("/livez", alive), web.get("/readyz", ready)]


def metrics_route(text: Callable[[], str]) -> web.RouteDef:
    async def answer(_: web.Request) -> web.Response:
        return metrics_response(text())

    return web.get("/metrics", answer)


def metrics_response(text: str) -> web.Response:
    response = web.Response(body=text.encode(), headers={"Content-Type": _CONTENT_TYPE})
    # For clients that say that they understand it, as Prometheus does.
    response.enable_compression()
    return response


class CannotListen(OSError):
    """The address is in use, is not of this machine, or needs more rights."""

    def __init__(self, where: Address, error: OSError) -> None:
        number = error.errno or 0
        # The errors of names (EAI) are negative, and have words of their own.
        super().__init__(number, os.strerror(number) if number > 0 else error.strerror)
        self.where = where

    def __str__(self) -> str:
        shown = f"[{self.where.host}]" if ":" in self.where.host else self.where.host
        return (
            f"Cannot listen on {shown}:{self.where.port}: {self.strerror}. "
            "Choose another address or port."
        )


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, where: Address | socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Address]:
    """Serve `app` and yield its address. Raises CannotListen.

    `where` is an address, or a socket that listens already.
    """
    heard: set[web.RequestHandler] = set()  # connections that have sent a request

    @web.middleware
    async def hear(request: web.Request, handler: Handler) -> web.StreamResponse:
        heard.add(request.protocol)
        return await handler(request)

    app.middlewares.append(hear)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    assert runner.server is not None  # since `setup`
    dropping = asyncio.create_task(_drop_silent(runner.server, heard), name="drop-silent-clients")
    try:
        site: web.BaseSite
        if isinstance(where, socket.socket):
            site = web.SockSite(runner, where, ssl_context=tls)
        else:
            site = web.TCPSite(runner, where.host, where.port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            assert isinstance(where, Address)  # a socket that listens cannot fail to
            raise CannotListen(where, error) from error
        yield Address(*runner.addresses[0][:2])
    finally:
        dropping.cancel()
        await runner.cleanup()


async def _drop_silent(server: web.Server, heard: "set[web.RequestHandler]") -> None:
    """Closes connections without a first request. aiohttp itself waits for it without a limit, so
    that anybody who can connect could use up the program's open files."""
    since: dict[web.RequestHandler, float] = {}
    while True:
        # At half the limit, a silent connection is closed after at most one and a half times the
        # limit.
        await asyncio.sleep(_FIRST_REQUEST_LIMIT_S / 2)
        now = asyncio.get_running_loop().time()
        # Closed connections are forgotten, or the set would grow as long as the program runs.
        heard.intersection_update(server.connections)
        since = {each: since.get(each, now) for each in server.connections if each not in heard}
        for connection, seen in since.items():
            if now - seen >= _FIRST_REQUEST_LIMIT_S:
                connection.force_close()
