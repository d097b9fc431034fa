"""The agent's HTTP endpoint: its metrics, and the readings of its cards.

On the loopback interface of the agent's pod it asks nobody who they are. Kubernetes' port-forward
leads there, for those who have the right to it (docs/decisions/0022-readings-by-port-forward.md).
On the network it has TLS, and asks the API server about everybody (docs/decisions/0030-metrics.md).
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gpupool.contract.readings import PATH, readings_text
from gpupool.core.readings import NodeReadings
from gpupool.hardware.driver import NoDriver
from kubeclient.client import Kube

if TYPE_CHECKING:
    from aiohttp import web

    from gpupool.health import Address

log = logging.getLogger(__name__)

# Less than a client waits: it is told that the driver hangs, and does not have to guess.
READ_LIMIT_S = 2.0
_PAUSE_AFTER_FAILURE_S = 10.0
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Pages:
    node: str
    metrics: Callable[[NodeReadings | None], str]
    readings: Callable[[], Awaitable[NodeReadings]]  # raises NoDriver


# Serves the pages until it is cancelled.
Serve: TypeAlias = Callable[[Pages], Awaitable[None]]


def on_loopback(port: int) -> Serve:
    """`port` 0: any free one. While another program has the port, the agent runs without its
    endpoint: it has more important work. Until somebody connects, it only listens: the server costs
    memory on every node, and most agents are never asked."""

    async def serve(pages: Pages) -> None:
        while True:
            try:
                listening = socket.create_server((_LOOPBACK, port))
            except OSError as error:
                words = f"cannot listen on {_LOOPBACK}:{port}: {error.strerror}"
                log.warning("no metrics and no readings, trying again", extra={"error": words})
                await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)
                continue
            with listening:
                await _somebody_connects(listening)
                await _serve_on(pages, listening)

    return serve


async def _somebody_connects(listening: socket.socket) -> None:
    loop, somebody = asyncio.get_running_loop(), asyncio.Event()
    listening.setblocking(False)
    loop.add_reader(listening, somebody.set)
    try:
        await somebody.wait()
    finally:
        loop.remove_reader(listening)


async def _serve_on(pages: Pages, listening: socket.socket) -> None:
    from gpupool.health import serving

    async with serving(application(pages), listening):
        await asyncio.Event().wait()


def on_accepted(accept: Callable[[], Awaitable[socket.socket]]) -> Serve:
    """On connections that somebody else accepts. Nothing is made ready before the first one:
    a local cluster has hundreds of agents, of which most are never asked."""

    async def serve(pages: Pages) -> None:
        from aiohttp import web

        first = await accept()
        runner = web.AppRunner(application(pages), access_log=None)
        await runner.setup()
        assert runner.server is not None  # since `setup`
        try:
            await _serve_accepted(runner.server, first, accept)
        finally:
            await runner.cleanup()

    return serve


async def _serve_accepted(
    server: "web.Server", connection: socket.socket, accept: Callable[[], Awaitable[socket.socket]]
) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await loop.connect_accepted_socket(server, connection)
        connection = await accept()


@contextlib.asynccontextmanager
async def serving_on_loopback(pages: Pages, port: int) -> "AsyncIterator[Address]":
    """Raises CannotListen."""
    from gpupool.health import LOOPBACK, Address, serving

    async with serving(application(pages), Address(LOOPBACK, port)) as address:
        yield address


async def serve(pages: Pages, how: Serve | None) -> None:
    if how is not None:
        await how(pages)


async def serve_scrapers(pages: Pages, where: "Address | None", kube: Kube) -> None:
    """Until cancelled: for Prometheus and other programs of the cluster, over HTTPS on the network.
    Whoever asks shows a token that may get the path. `where` None: nowhere."""
    if where is None:
        return
    from gpupool.health import CannotListen, serving
    from gpupool.scrapers import Reviewer, guard, own_tls

    tls, reviewer = own_tls(pages.node), Reviewer(kube)
    while True:
        app = application(pages)
        app.middlewares.append(guard(reviewer))
        try:
            async with serving(app, where, tls):
                await asyncio.Event().wait()
        except CannotListen as error:
            log.warning("no scrapers are served, trying again", extra={"error": str(error)})
            await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)


def application(pages: Pages) -> "web.Application":
    # Imported here: aiohttp's server costs memory and time, and a local cluster has hundreds of
    # agents that nobody asks.
    from aiohttp import web

    from gpupool.health import health_routes, metrics_response

    async def metrics(_: web.Request) -> web.Response:
        # Without readings there is still something to tell: that the driver does not answer.
        found = None
        with contextlib.suppress(NoDriver, TimeoutError):
            async with asyncio.timeout(READ_LIMIT_S):
                found = await pages.readings()
        return metrics_response(pages.metrics(found))

    async def readings(_: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(READ_LIMIT_S):
                found = await pages.readings()
        except TimeoutError:
            words = f"the NVIDIA driver did not answer in {READ_LIMIT_S:.0f} s\n"
            return web.Response(status=503, text=words)
        except NoDriver as error:
            return web.Response(status=503, text=f"{error}\n")
        return web.Response(text=readings_text(found), content_type="application/json")

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get(PATH, readings), *health_routes()])
    return app
