"""HTTP endpoints for health and metrics, shared by agent, scheduler, extender and admission.

Every program has a metrics registry of its own. The global registry of prometheus_client is never
used: a local cluster runs hundreds of agents in one process, and their metrics must not mix.
"""

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple

from aiohttp import web
from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

LOOPBACK = "127.0.0.1"
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Address(NamedTuple):
    host: str
    port: int  # 0: any free port


class _WithoutCreated(Collector):
    """Leaves out the `_created` samples, which prometheus_client adds to counters and histograms.

    The library can also turn them off, but only for the whole process.
    """

    def __init__(self, metrics: Collector) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        for metric in self._metrics.collect():
            metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
            yield metric


def metrics_text(metrics: Collector) -> str:
    """The metrics of one registry or collector in the Prometheus text format."""
    return generate_latest(_WithoutCreated(metrics)).decode()


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
        return web.Response(body=text().encode(), headers={"Content-Type": _CONTENT_TYPE})

    return web.get("/metrics", answer)


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, where: Address | socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Address]:
    """Serve `app` and yield its address. Raises OSError when the address is taken.

    `where` is an address, or a socket that listens already.
    """
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site: web.BaseSite
        if isinstance(where, socket.socket):
            site = web.SockSite(runner, where, ssl_context=tls)
        else:
            site = web.TCPSite(runner, where.host, where.port, ssl_context=tls)
        await site.start()
        yield Address(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()
