"""Everything that is no resource: discovery, OpenAPI, version, health, metrics."""

from localkube.apiserver import health_pages, metrics, status
from localkube.apiserver.api import Api
from localkube.apiserver.request import Answer, Request, User
from localkube.apiserver.routing import NotApi
from localkube.apiserver.security.access import Access, forbidden

_NO_DOCUMENT = Answer(404, b"", "text/plain; charset=utf-8")
_UNKNOWN = Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")


async def answer(api: Api, request: Request, target: NotApi) -> Answer:
    path = target.path or "/"
    page, _, check = path.removeprefix("/").partition("/")
    if page in health_pages.PAGES:
        found = health_pages.answer(api.health, request, page, check, api.store.problem)
        return found or _UNKNOWN
    if request.user is None:
        raise status.unauthorized()
    if request.method != "GET":
        raise status.method_not_allowed()
    _authorise(api, request.user, path)
    if path.startswith("/openapi/"):
        return await _openapi(api, request, request.user, path) or _NO_DOCUMENT
    return _page(api, request, path) or _UNKNOWN


async def _openapi(api: Api, request: Request, user: User, path: str) -> Answer | None:
    if api.openapi.is_ready(path):
        return api.openapi.answer(path, request)
    return await api.long_work.done(user.name, lambda: api.openapi.answer(path, request))


def _page(api: Api, request: Request, path: str) -> Answer | None:
    if path == "/metrics":
        return Answer(200, api.metrics.text(), metrics.CONTENT_TYPE)
    return api.discovery.answer(path, request.headers)


def _authorise(api: Api, user: User, path: str) -> None:
    access = Access(verb="get", path=path)
    verdict = api.authorizer.allowed(user, access)
    if not verdict.allowed:
        raise forbidden(user, access, verdict.reason)
