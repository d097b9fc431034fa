"""The console's HTTP server: pages and actions for those who are signed in, and a way to sign in.

Pages and actions are values (`parts/page.py`, `parts/action.py`). This file leads requests to them,
and answers for whatever they raise.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from urllib.parse import unquote

from aiohttp import web

from gpupool.console import guard, sign_in, troubles
from gpupool.console.answers import answer_action, around, frame_of, language, page_html
from gpupool.console.machines import MachineType
from gpupool.console.model import NewModel
from gpupool.console.own_clusters import OwnClusters
from gpupool.console.pages import ACTIONS, CHANNELS, PAGES, SHORT
from gpupool.console.parts.action import Action
from gpupool.console.parts.channel import Channel
from gpupool.console.parts.page import NoSuchThing, Page
from gpupool.console.platform import Platform
from gpupool.console.render import THEMES, Frame, cluster_address, html
from gpupool.console.rights import Denied, SignedOut
from gpupool.console.sessions import Session, Sessions
from gpupool.console.sight import Sights
from gpupool.console.static_files import static_files, static_mark
from gpupool.console.stream import MOST_STREAMS, follow, wants_stream
from gpupool.console.visit import Visit
from gpupool.console.watches import NotRead, Topic
from gpupool.console.words import TABLES, translator
from kubeclient.errors import KubeError, Refused

log = logging.getLogger(__name__)

_MAX_BYTES = 2 * 1024 * 1024  # of a form: a manifest may be large
_YEAR_S = 365 * 86_400

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    def __init__(
        self,
        methods: sign_in.SignInMethods,
        new_model: NewModel,
        cluster: str = "cluster",
        samples: Mapping[str, str] | None = None,
        machines: tuple[MachineType, ...] = (),
        platform: Platform | None = None,
    ) -> None:
        """`samples`: manifests to begin with, by name."""
        self._samples = samples or {}
        self._machines = machines
        self._methods = methods
        self._cluster = cluster
        self.sessions = Sessions(methods.clock)
        self._sights = Sights(new_model, methods.clock, methods.history_of, methods.agents)
        self._own = (
            OwnClusters(platform, cluster, self._sights, methods.clock)
            if platform is not None and methods.as_user is None
            else None
        )
        self._streams: set[asyncio.Task[object]] = set()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BYTES, middlewares=[self._guard])
        app.router.add_get("/", self._home)
        for page in PAGES:
            app.router.add_get(_route(page.path), self._page(page))
        for action in ACTIONS:
            app.router.add_get(_route(action.path), self._action(action))
            app.router.add_post(_route(action.path), self._action(action))
        for channel in CHANNELS:
            app.router.add_route(channel.method, _route(channel.path), self._channel(channel))
        for path in SHORT:
            app.router.add_get(path, self._short)
        app.router.add_get("/static/{file}", _static)
        app.router.add_get("/static/{mark}/{file}", _static)
        app.router.add_get("/sign-in", self._sign_in_page)
        app.router.add_post("/sign-in", self._sign_in)
        app.router.add_post("/sign-out", self._sign_out)
        app.on_shutdown.append(self._end_streams)
        return app

    async def _end_streams(self, _: web.Application) -> None:
        """They never end by themselves, and the server waits for open requests."""
        for task in list(self._streams):
            task.cancel()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        if words := guard.refusal(request):
            answer: web.StreamResponse = _html(words, 403, "text/plain")
        else:
            answer = await self._answered(request, handler)
        if not answer.prepared:
            answer.headers.update(guard.HEADERS | dict(answer.headers))
        return answer

    async def _answered(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        try:
            return _preferred(request) or await handler(request)
        except web.HTTPException as found:
            if found.status < 400:  # in aiohttp redirects are exceptions as well
                return found
            trouble = troubles.no_page(found.status, request.path)
        except NoSuchThing as missing:
            trouble = troubles.no_thing(str(missing))
        except SignedOut:
            return await self._signed_out(request)
        except Denied as denied:
            trouble = troubles.no_right(translator(language(request)), denied)
        except (KubeError, NotRead) as error:
            if isinstance(error, Refused) and error.code == 401:
                return await self._signed_out(request)
            trouble = troubles.no_answer(str(error), has_others=self._own is not None)
        except Exception as error:
            if isinstance(error, ConnectionResetError) and _has_left(request):
                return web.Response()  # nobody reads it
            log.exception("page failed", extra={"path": request.path})
            trouble = troubles.own_mistake(request.path)
        return troubles.trouble_page(await self._frame(request, trouble), trouble)

    async def _frame(self, request: web.Request, trouble: troubles.Trouble) -> Frame:
        """That of the cluster, for those who are signed in; else one of no cluster."""
        frame = frame_of(request)
        try:
            visit = self._visit(request, await self._session(request))
            put = await around(visit, "", asks=not trouble.is_of_cluster)
        except (SignedOut, NoSuchThing, KubeError, NotRead):
            return frame
        except Exception:  # whatever is broken: the page that says so must come
            log.exception("frame failed", extra={"path": request.path})
            return frame
        return put(frame)

    async def _signed_out(self, request: web.Request) -> web.StreamResponse:
        await self.sessions.end(request.cookies.get(_cookie(request), ""))
        return web.HTTPSeeOther(sign_in.sign_in_address(request.path_qs))

    # -- pages and actions ---------------------------------------------------------------------

    async def _home(self, request: web.Request) -> web.StreamResponse:
        return await self._to(request, f"{cluster_address(self._cluster)}/{PAGES[0].path}")

    async def _short(self, request: web.Request) -> web.StreamResponse:
        """/pods/default/web, for the cluster with which the console was started."""
        return await self._to(request, f"{cluster_address(self._cluster)}{request.path_qs}")

    async def _to(self, request: web.Request, address: str) -> web.StreamResponse:
        if (key := request.query.get("key")) is not None:
            return await self._enter_by_key(request, key, address.partition("?")[0])
        raise web.HTTPSeeOther(address)

    def _page(self, page: Page) -> Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            if (key := request.query.get("key")) is not None:
                return await self._enter_by_key(request, key, request.path)
            session = await self._session(request)
            if wants_stream(request):
                return await self._live(request, session, page)
            notice = unquote(request.cookies.get(f"{_cookie(request)}-notice", ""))
            visit = self._visit(request, session)
            answer = _html(await page_html(page, visit, request, notice=notice))
            if notice:
                answer.del_cookie(f"{_cookie(request)}-notice")
            return answer

        return answer

    async def _live(self, request: web.Request, session: Session, page: Page) -> web.StreamResponse:
        async def make() -> tuple[str, dict[Topic, int]]:
            visit = self._visit(request, session)
            return await page_html(page, visit, request, bare=True), visit.read

        with self._counted(session):
            return await follow(request, session, make, self._methods.clock)

    def _channel(self, channel: Channel) -> Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            session = await self._session(request)
            visit = self._visit(request, session)
            rights = channel.rights(visit)
            await session.sight.rights.require(*rights)

            async def may_go_on() -> bool:
                if session.ends <= self._methods.clock():
                    return False
                try:
                    return not await visit.lacks(*rights)
                except (SignedOut, KubeError):
                    return False

            with self._counted(session):
                return await channel.serve(visit, request, may_go_on)

        return answer

    @contextlib.contextmanager
    def _counted(self, session: Session) -> Iterator[None]:
        """Around an answer that goes on: so many for each session, and none when we stop."""
        if session.streams >= MOST_STREAMS:
            raise web.HTTPTooManyRequests
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        session.streams += 1
        try:
            yield
        finally:
            session.streams -= 1
            self._streams.discard(task)

    def _action(self, action: Action) -> Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            visit = self._visit(request, await self._session(request))
            return await answer_action(action, visit, request, f"{_cookie(request)}-notice")

        return answer

    async def _session(self, request: web.Request) -> Session:
        session = self.sessions.find(request.cookies.get(_cookie(request), ""))
        if session is None:
            raise SignedOut
        wanted = self._wanted(request)
        if self._own is not None:
            return await self._own.session_at(session, wanted)
        if wanted != self._cluster:
            raise NoSuchThing(f'cluster "{wanted}"')
        return session

    def _wanted(self, request: web.Request) -> str:
        """The cluster in the address; also of a page that does not exist, for which there is no
        route."""
        if found := request.match_info.get("cluster"):
            return found
        match request.rel_url.raw_parts:
            case ("/", "clusters", name, _, *_):
                return unquote(name)
            case _:
                return self._cluster

    def _visit(self, request: web.Request, session: Session) -> Visit:
        names = {k: v for k, v in request.match_info.items() if k != "cluster"}
        translate = translator(language(request))
        return Visit(
            session,
            self._wanted(request),
            translate,
            names,
            dict(request.query),
            self._samples,
            self._machines,
            self._own,
        )

    # -- signing in and out --------------------------------------------------------------------

    async def _sign_in_page(self, request: web.Request) -> web.StreamResponse:
        return self._door(request)

    async def _enter_by_key(self, request: web.Request, key: str, path: str) -> web.StreamResponse:
        try:
            cookie = await sign_in.by_key(self._methods, self._sights, self.sessions, key)
        except sign_in.NotSignedIn as refused:
            return self._door(request, refused)
        # The redirect drops the query, so that the key does not stay in the address bar.
        return _entered(request, cookie, path)

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        if self._methods.as_user is None:
            raise web.HTTPNotFound
        token = str((await request.post()).get("token", "")).strip()
        try:
            cookie = await sign_in.by_token(self._methods, self._sights, self.sessions, token)
        except sign_in.NotSignedIn as refused:
            return self._door(request, refused)
        return _entered(request, cookie, sign_in.safe_path(request.query.get("next", "/")))

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        await self.sessions.end(request.cookies.get(_cookie(request), ""))
        answer = web.HTTPSeeOther("/sign-in")
        answer.del_cookie(_cookie(request))
        return answer

    def _door(
        self, request: web.Request, refused: sign_in.NotSignedIn | None = None
    ) -> web.Response:
        frame = frame_of(request)
        values = {
            "refusal": frame.t(str(refused)) if refused else "",
            "by_token": self._methods.as_user is not None,
            "next": sign_in.safe_path(request.query.get("next", "/")),
        }
        return _html(html("sign_in.html", frame, values), refused.status if refused else 200)


def _route(path: str) -> str:
    return f"/clusters/{{cluster}}/{path}"


def _cookie(request: web.Request) -> str:
    """Of this port: browsers send cookies to all ports of a host, and there may be two consoles."""
    return f"gpupool-console-{request.url.port}"


def _entered(request: web.Request, cookie: str, path: str) -> web.StreamResponse:
    answer = web.HTTPSeeOther(path)
    # Strict: requests that another site causes carry no session. Not `secure`, because the console
    # speaks plain HTTP on the loopback interface.
    answer.set_cookie(_cookie(request), cookie, httponly=True, samesite="Strict", path="/")
    return answer


def _preferred(request: web.Request) -> web.StreamResponse | None:
    """?language=zh-CN and ?theme=dark are remembered by the browser, and leave the address."""
    for name, known in (("language", TABLES), ("theme", THEMES)):
        chosen = request.query.get(name, "")
        if chosen in known and request.method == "GET" and not wants_stream(request):
            rest = str(request.rel_url.without_query_params(name))
            # To a browser, what begins with two slashes is the name of another host.
            answer = web.HTTPSeeOther("/" + rest.lstrip("/\\"))
            answer.set_cookie(f"gpupool-{name}", chosen, max_age=_YEAR_S, samesite="Strict")
            return answer
    return None


def _has_left(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def _static(request: web.Request) -> web.StreamResponse:
    file = static_files().get(request.match_info["file"])
    if file is None:
        raise web.HTTPNotFound
    answer = web.Response(text=file.text, content_type=file.kind)
    # With another mark it is asked for by a page of before: a browser must not keep it.
    if request.match_info.get("mark") == static_mark():
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return answer


def _html(text: str, status: int = 200, kind: str = "text/html") -> web.Response:
    return web.Response(text=text, status=status, content_type=kind)
