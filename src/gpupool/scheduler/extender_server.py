"""The extender's HTTP routes. Request bodies have a size limit; errors are plain text."""

import logging
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from gpupool import __version__
from gpupool.contract import extender_messages as messages
from gpupool.contract.extender_messages import BadMessage
from gpupool.contract.names import SCHEDULER_LEASE
from gpupool.health import health_routes, metrics_route
from gpupool.scheduler.extender import Extender
from gpupool.scheduler.inspection import inspection

log = logging.getLogger(__name__)

PREFIX = "/gpushare-scheduler"
_MAX_BYTES = 256 * 1024**2  # room for all node objects of a large cluster

Answer = Callable[[Extender, bytes], object]


class NotLeading(Exception):
    def __init__(self, holder: str) -> None:
        by = f"{holder} does (Lease {SCHEDULER_LEASE})" if holder else "nobody does yet"
        super().__init__(f"this extender does not decide about GPUs now, {by}; ask again")


Current = Callable[[], Extender]


def application(current: Current, metrics: Callable[[], str] = str) -> web.Application:
    """`current`: returns the extender; raises NotLeading if another leads or it has not synced.
    `metrics`: their text."""
    app = web.Application(client_max_size=_MAX_BYTES)
    app.add_routes(
        [
            web.post(f"{PREFIX}/filter", _answering(current, _filter)),
            web.post(f"{PREFIX}/prioritize", _answering(current, _prioritize)),
            web.post(f"{PREFIX}/preempt", _answering(current, _preempt)),
            web.post(f"{PREFIX}/bind", _binding(current)),
            web.get(f"{PREFIX}/inspect", _inspecting(current)),
            web.get(f"{PREFIX}/inspect/{{node}}", _inspecting(current)),
            web.get("/version", _version),
            *health_routes(lambda: _leads(current)),
            metrics_route(metrics),
        ]
    )
    return app


def _leads(current: Current) -> bool:
    try:
        return current() is not None
    except NotLeading:
        return False


def _filter(extender: Extender, body: bytes) -> object:
    return extender.filter(messages.extender_args(body))


def _prioritize(extender: Extender, body: bytes) -> object:
    return extender.prioritize(messages.extender_args(body))


def _preempt(extender: Extender, body: bytes) -> object:
    return extender.preempt(messages.preemption_args(body))


def _answering(
    current: Current, answer: Answer
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            return _json(answer(current(), await request.read()))
        except NotLeading as error:
            return web.Response(status=503, text=f"{error}\n")
        except BadMessage as error:
            log.warning(
                "message cannot be parsed", extra={"path": request.path, "error": str(error)}
            )
            return web.Response(status=400, text=f"{error}\n")

    return handle


def _binding(current: Current) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            args = messages.binding_args(await request.read())
            return _json(messages.binding_result(await current().bind(args)))
        except NotLeading as error:
            return _json(messages.binding_result(str(error)))
        except BadMessage as error:
            return web.Response(status=400, text=f"{error}\n")

    return handle


def _inspecting(current: Current) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            cluster = current().state.cluster
        except NotLeading as error:
            return web.Response(status=503, text=f"{error}\n")
        return _json(inspection(cluster, request.match_info.get("node", "")))

    return handle


async def _version(_: web.Request) -> web.Response:
    return _json({"version": __version__})


def _json(answer: object) -> web.Response:
    return web.Response(body=orjson.dumps(answer), content_type="application/json")
