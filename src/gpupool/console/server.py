"""The console's HTTP server: pages for those who are signed in, and a page to sign in.

It listens on the loopback interface, and refuses requests whose Host is another name. Otherwise a
page of the web could reach it through the visitor's browser, by a DNS name that points to 127.0.0.1
(DNS rebinding).
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from importlib import resources

from aiohttp import web

from gpupool.console import pages
from gpupool.console.sessions import ReadCluster, Session, Sessions, is_key
from kubeclient.client import Kube
from kubeclient.errors import KubeError, Refused

log = logging.getLogger(__name__)

_HOSTS = ("127.0.0.1", "localhost")  # on any port: kubectl port-forward uses another one
_COOKIE = "gpupool-console"
_MAX_BYTES = 16 * 1024  # of a form; a token has one or two thousand
# A fixed table: the name comes from the URL, and must not lead to other files.
_STATIC = {"console.css": "text/css", "refresh.js": "text/javascript"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# Makes a client that authenticates with the given token of the cluster.
AsUser = Callable[[str], AbstractAsyncContextManager[Kube]]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Page = Callable[[web.Request, Session], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class SignInMethods:
    """How visitors sign in: with the printed key, as `owner`; or with a token, as its user."""

    read: ReadCluster
    clock: Callable[[], float]
    key: str = ""
    owner: Kube | None = None
    as_user: AsUser | None = None


class Console:
    def __init__(self, methods: SignInMethods) -> None:
        self._methods = methods
        self.sessions = Sessions(methods.clock)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BYTES, middlewares=[self._guard])
        app.router.add_get("/", self._page(_cards))
        app.router.add_get("/pods", self._page(_pods))
        app.router.add_get("/pods/{namespace}/{name}", self._page(_pod))
        app.router.add_get("/services", self._page(_services))
        app.router.add_get("/waiting", self._page(_waiting))
        app.router.add_get("/static/{file}", _static)
        app.router.add_get("/sign-in", self._sign_in_page)
        app.router.add_post("/sign-in", self._sign_in)
        app.router.add_post("/sign-out", self._sign_out)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        if request.url.host not in _HOSTS:
            return _said(403, "Wrong host", f'This console does not answer as "{request.host}".')
        try:
            answer = await handler(request)
        except web.HTTPException as found:
            # In aiohttp redirects are exceptions as well.
            if found.status < 400:
                answer = found
            else:
                answer = _said(found.status, found.reason, f"{request.method} {request.path}")
        except KubeError as error:
            answer = _said(502, "The API server did not answer as expected", str(error))
        answer.headers.update(_HEADERS)
        return answer

    def _page(self, page: Page) -> Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            key = request.query.get("key")
            if key is not None:
                return await self._enter_by_key(key, request.path)
            session = self.sessions.find(request.cookies.get(_COOKIE, ""))
            if session is None:
                raise web.HTTPSeeOther("/sign-in")
            return _html(await page(request, session))

        return answer

    async def _sign_in_page(self, _request: web.Request) -> web.StreamResponse:
        return _html(pages.sign_in_page(by_token=self._methods.as_user is not None))

    async def _enter_by_key(self, key: str, path: str) -> web.StreamResponse:
        methods = self._methods
        if methods.owner is None or not is_key(key, methods.key):
            page = pages.sign_in_page(
                "That is not the key of this console.", by_token=methods.as_user is not None
            )
            return _html(page, 403)
        # The redirect drops the query, so that the key does not stay in the address bar.
        return await self._begin(Session(methods.owner, methods.read, methods.clock), path)

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        as_user = self._methods.as_user
        if as_user is None:
            raise web.HTTPNotFound
        token = str((await request.post()).get("token", "")).strip()
        # The token becomes part of an HTTP header, where a line break would begin another header.
        if not token.isascii() or not token.isprintable() or not token:
            return _html(pages.sign_in_page("That is not a token.", by_token=True), 400)
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(as_user(token))
            session = Session(kube, self._methods.read, self._methods.clock)
            try:
                # Asked once before the session begins: the API server, not the console, knows
                # whether a token is good.
                await session.allowed()
            except Refused as refused:
                words = f"The cluster refuses: {refused}"
                return _html(pages.sign_in_page(words, by_token=True), 403)
            # From here on the session closes the client; before, whatever happens does.
            session.closing = stack.pop_all()
        return await self._begin(session, "/")

    async def _begin(self, session: Session, path: str) -> web.StreamResponse:
        cookie = await self.sessions.begin(session)
        answer = web.HTTPSeeOther(path)
        # Strict: requests that another site causes carry no session (CSRF). Not `secure`, because
        # the console speaks plain HTTP on the loopback interface.
        answer.set_cookie(_COOKIE, cookie, httponly=True, samesite="Strict", path="/")
        return answer

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        await self.sessions.end(request.cookies.get(_COOKIE, ""))
        answer = web.HTTPSeeOther("/sign-in")
        answer.del_cookie(_COOKIE)
        return answer


async def _cards(request: web.Request, session: Session) -> str:
    page = request.query.get("page", "1")
    # int() refuses thousands of digits, hence the limit on the length.
    number = int(page) if page.isdecimal() and len(page) < 10 else 1
    return pages.cards_page(await session.seen(), request.query.get("q", ""), number)


async def _pods(request: web.Request, session: Session) -> str:
    return pages.pods_page(await session.seen(), request.query.get("q", ""))


async def _services(_request: web.Request, session: Session) -> str:
    return pages.services_page(await session.services())


async def _waiting(_request: web.Request, session: Session) -> str:
    return pages.waiting_page(await session.seen())


async def _pod(request: web.Request, session: Session) -> str:
    namespace, name = request.match_info["namespace"], request.match_info["name"]
    page = pages.pod_page(await session.seen(), namespace, name)
    if page is None:
        raise web.HTTPNotFound
    return page


async def _static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["file"]
    if name not in _STATIC:
        raise web.HTTPNotFound
    text = (resources.files("gpupool.console") / "static" / name).read_text()
    return web.Response(text=text, content_type=_STATIC[name])


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


def _said(status: int, title: str, words: str) -> web.Response:
    return _html(pages.trouble_page(title, words), status)
