"""Pages with hostile texts in a real browser: nothing of them runs, and nothing is asked for."""

from collections.abc import Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gpupool.testing import Cluster
from tests.browser.conftest import OpenBrowser
from tests.browser.console_pages import running_console, signed_in
from tests.console.evil_objects import KINDS, make_evil_objects
from tests.e2e.gpu_cluster import SHARED_POOLS

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=SHARED_POOLS) as running:
        make_evil_objects(running)
        yield running


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> Iterator[str]:
    with running_console(cluster.kubeconfig) as found:
        yield found


async def test_no_text_of_a_user_runs_in_a_browser(address: str, open_browser: OpenBrowser) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        shown = 0
        for plural in KINDS:
            for path in (f"/{plural}", f"/{plural}/default/evil", f"/{plural}/default/evil/edit"):
                await visitor.goes_to(path)
                await page.shows("evil")
                assert await page.run("document.title") != "broken"
                assert (
                    await page.run("document.querySelectorAll('#page img, #page script').length")
                    == 0
                )
                links = "[...document.querySelectorAll('#page a')].map(each => each.protocol)"
                assert set(await page.run(links)) <= {"http:"}
                html = str(await page.run("document.querySelector('#page').innerHTML"))
                shown += "&lt;script&gt;" in html
        assert shown >= len(KINDS), "the texts were on the pages, as texts"
        origin = visitor.address
        assert all(url.startswith((origin, "data:")) for url in page.asked)


async def test_other_servers_of_this_machine_get_no_cookie(
    address: str, open_browser: OpenBrowser
) -> None:
    sent = []

    async def note(request: web.Request) -> web.Response:
        sent.append((request.path, request.headers.get("Cookie", "")))
        return web.Response(text="<h1>a notebook of somebody else</h1>", content_type="text/html")

    served = web.Application()
    served.router.add_get("/{name}", note)
    async with TestServer(served) as other, signed_in(open_browser, address) as visitor:
        for host in ("127.0.0.1", "localhost"):
            await visitor.page.open(f"http://{host}:{other.port}/{host}")
            await visitor.page.shows("a notebook of somebody else")
        await visitor.goes_to("/nodes")  # still signed in
    assert {("/127.0.0.1", ""), ("/localhost", "")} <= set(sent)
    assert all(cookie == "" for _, cookie in sent)
