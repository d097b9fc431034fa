"""Many visitors at once: nobody is shut out, and those with the same rights share what they see."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import orjson
import pytest

from gpupool.cli.console import new_model
from gpupool.console.run import ConsoleSettings, run_console
from kubeclient.client import Headers, Kube, Query
from kubeclient.objects import Obj

pytestmark = [
    pytest.mark.timeout(600),
    # The console answers with redirects as values; here it runs inside the test's own process.
    pytest.mark.filterwarnings("ignore:returning HTTPException object:DeprecationWarning"),
]

VISITORS = 200
PATIENCE_S = 300.0


def a_pod(name: str, version: int) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-17T00:00:00Z",
        },
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
        "status": {"phase": "Pending"},
    }


@dataclass
class Api:
    """An API server with one pod, which counts clients and their watches. It allows everything."""

    clients: int = 0
    watches: Counter[str] = field(default_factory=Counter)  # by resource, of those that are open
    news: list[Obj] = field(default_factory=list)
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def as_user(self, token: str) -> AsyncIterator[Kube]:
        self.clients += 1
        client = Client(self, token)
        try:
            yield Kube(client)
        finally:
            client.is_closed = True
            self.clients -= 1
            self._wake()

    def makes(self, pod: Obj) -> None:
        self.news.append(pod)
        self._wake()

    async def next(self) -> None:
        await self._told.wait()

    def _wake(self) -> None:
        self._told.set()
        self._told = asyncio.Event()


@dataclass
class Client:
    api: Api
    token: str  # "…-of-USER", where the API server knows the user
    is_closed: bool = False

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        assert not self.is_closed, f"{method} {path} by a client that was closed"
        if method == "POST":  # who am I, and may I
            user = {"username": self.token.partition("-of-")[2]}
            return 201, orjson.dumps({"status": {"allowed": True, "userInfo": user}})
        found = [a_pod("first", 1), *self.api.news] if path == "/api/v1/pods" else []
        version = str(1 + len(self.api.news))
        return 200, orjson.dumps({"items": found, "metadata": {"resourceVersion": version}})

    async def stream(
        self, path: str, *, query: Query, headers: Headers
    ) -> AsyncGenerator[bytes, None]:
        what, seen = path.rpartition("/")[2], len(self.api.news)
        self.api.watches[what] += 1
        try:
            while not self.is_closed:
                await self.api.next()
                for pod in self.api.news[seen:] if what == "pods" else ():
                    yield orjson.dumps({"type": "ADDED", "object": pod}) + b"\n"
                seen = len(self.api.news)
        finally:
            self.api.watches[what] -= 1


@dataclass
class Office:
    api: Api
    home: str
    session: aiohttp.ClientSession

    async def signs_in(self, token: str) -> str:
        """The cookie of the new visitor."""
        form, headers = {"token": token}, {"Origin": self.home}
        async with self.session.post(
            f"{self.home}/sign-in", data=form, headers=headers, allow_redirects=False
        ) as answer:
            assert answer.status == 303, await answer.text()
            return answer.headers["Set-Cookie"].partition(";")[0]

    async def signs_out(self, cookie: str) -> None:
        headers = {"Origin": self.home, "Cookie": cookie}
        async with self.session.post(
            f"{self.home}/sign-out", headers=headers, allow_redirects=False
        ) as answer:
            assert answer.status == 303

    async def is_signed_out(self, cookie: str) -> bool:
        url = f"{self.home}/clusters/cluster/pods"
        async with self.session.get(
            url, headers={"Cookie": cookie}, allow_redirects=False
        ) as answer:
            return answer.status == 303

    @contextlib.asynccontextmanager
    async def follows(self, cookie: str) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Cookie": cookie, "Accept": "text/event-stream"}
        url = f"{self.home}/clusters/cluster/pods"
        async with self.session.get(url, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            yield answer


async def until_it_shows(page: aiohttp.ClientResponse, text: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async for line in page.content:
            if text.encode() in line:
                return
    raise AssertionError(f"the page has ended without {text}")


@contextlib.asynccontextmanager
async def an_office() -> AsyncIterator[Office]:
    api = Api()
    listens: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    settings = ConsoleSettings()
    console = asyncio.create_task(
        run_console(None, api.as_user, new_model, settings, listens.set_result)
    )
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    jar = aiohttp.DummyCookieJar()
    try:
        async with aiohttp.ClientSession(
            connector=connector, cookie_jar=jar, timeout=timeout, read_bufsize=2**20
        ) as session:
            yield Office(api, f"http://127.0.0.1:{await listens}", session)
    finally:
        console.cancel()
        await asyncio.gather(console, return_exceptions=True)


async def test_two_hundred_visitors_with_the_same_rights_share_one_watch_of_each_resource() -> None:
    async with an_office() as office, contextlib.AsyncExitStack() as pages:
        cookies = [await office.signs_in("shared") for _ in range(VISITORS)]
        assert len(set(cookies)) == VISITORS
        opened = [await pages.enter_async_context(office.follows(each)) for each in cookies]
        await asyncio.gather(*(until_it_shows(page, "first") for page in opened))
        assert set(office.api.watches.values()) == {1}
        assert office.api.clients == 1
        office.api.makes(a_pod("second", 2))
        await asyncio.gather(*(until_it_shows(page, "second") for page in opened))


async def test_two_hundred_visitors_with_tokens_of_their_own_see_what_happens() -> None:
    async with an_office() as office, contextlib.AsyncExitStack() as pages:
        cookies = [await office.signs_in(f"token-{number}") for number in range(VISITORS)]
        opened = [await pages.enter_async_context(office.follows(each)) for each in cookies]
        await asyncio.gather(*(until_it_shows(page, "first") for page in opened))
        assert set(office.api.watches.values()) == {VISITORS}
        office.api.makes(a_pod("second", 2))
        await asyncio.gather(*(until_it_shows(page, "second") for page in opened))
        for cookie in cookies:
            await office.signs_out(cookie)
        assert office.api.clients == 0, "whoever signs out leaves nothing behind"
        assert sum(office.api.watches.values()) == 0


async def test_a_visitor_who_signs_out_takes_nothing_from_others_with_the_same_token() -> None:
    async with an_office() as office:
        first, second = await office.signs_in("shared"), await office.signs_in("shared")
        async with office.follows(first) as page:
            await until_it_shows(page, "first")
        await office.signs_out(first)
        async with office.follows(second) as page:
            await until_it_shows(page, "first")
            office.api.makes(a_pod("second", 2))
            await until_it_shows(page, "second")
        await office.signs_out(second)
        assert office.api.clients == 0


async def test_a_visitor_who_signs_in_again_and_again_ends_only_sessions_of_their_own() -> None:
    async with an_office() as office:
        quiet = await office.signs_in("quiet")
        greedy = [await office.signs_in("greedy") for _ in range(2 * VISITORS + 1)]
        async with office.follows(quiet) as page:
            await until_it_shows(page, "first")
        async with office.follows(greedy[-1]) as page:
            await until_it_shows(page, "first")
        assert await office.is_signed_out(greedy[0])
        assert await office.is_signed_out(greedy[1])
        assert not await office.is_signed_out(greedy[2])


async def test_a_user_with_hundreds_of_tokens_ends_only_sessions_of_their_own() -> None:
    async with an_office() as office:
        quiet = await office.signs_in("one-of-quiet")
        for number in range(2 * VISITORS + 1):
            await office.signs_in(f"{number}-of-greedy")
        assert not await office.is_signed_out(quiet)


async def test_where_each_visitor_has_one_session_the_oldest_ends() -> None:
    async with an_office() as office:
        cookies = [await office.signs_in(f"token-{number}") for number in range(2 * VISITORS + 1)]
        assert await office.is_signed_out(cookies[0])
        assert not await office.is_signed_out(cookies[1])
