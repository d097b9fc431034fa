"""The HTTPS server that the API server calls with AdmissionReviews."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping

import orjson
from aiohttp import web

from gpupool.admission.review import BadReview
from gpupool.health import health_routes, serving
from kubeclient.objects import Obj

log = logging.getLogger(__name__)

Review = Callable[[Obj], Obj]

_MAX_BYTES = 8 * 1024**2  # an old and a new object, each of the largest size in a cluster


async def serve(
    listening: socket.socket, context: ssl.SSLContext, reviews: Mapping[str, Review]
) -> None:
    """Serves until cancelled. `reviews`: by path."""
    async with serving(application(reviews), listening, context):
        await asyncio.Event().wait()


def application(reviews: Mapping[str, Review]) -> web.Application:
    app = web.Application(client_max_size=_MAX_BYTES)
    for path, review in reviews.items():
        app.router.add_post(path, _answering(review))
    app.add_routes(health_routes())
    return app


def _answering(review: Review) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            answered = review(orjson.loads(await request.read()))
        except (BadReview, orjson.JSONDecodeError) as error:
            log.warning("not a review", extra={"path": request.path, "error": str(error)})
            return web.Response(status=400, text=f"{error}\n")
        return web.Response(body=orjson.dumps(answered), content_type="application/json")

    return answer
