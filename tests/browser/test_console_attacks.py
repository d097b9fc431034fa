"""Pages with hostile texts in a real browser: nothing of them runs, and nothing is asked for."""

import json
from collections.abc import Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gpupool.contract.names import ANNOTATION_CORDONED_CARDS
from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import LANGUAGES, signed_in
from tests.console.evil_objects import EVIL, KINDS, make_evil_objects
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually
from tests.e2e.objects import container, pod

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=SHARED_POOLS) as running:
        make_evil_objects(running)
        yield running


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


def close_a_card(cluster: Cluster) -> str:
    """With a hostile reason. The name of its node, once its agent has told the reason."""
    nodes = call(cluster, "GET", "/api/v1/nodes")[1]["items"]
    name = min(node["metadata"]["name"] for node in nodes)
    path = f"/api/v1/nodes/{name}"

    def orders() -> bool:
        node = call(cluster, "GET", path)[1]
        notes = node["metadata"]["annotations"]
        cards = json.loads(notes.get("gpupool.io/inventory", "{}")).get("cards") or []
        if not cards:
            return False
        notes[ANNOTATION_CORDONED_CARDS] = json.dumps({cards[0]["uuid"]: EVIL})
        return call(cluster, "PUT", path, node)[0] == 200

    eventually(orders, within_s=90)

    def is_told() -> bool:
        notes = call(cluster, "GET", path)[1]["metadata"]["annotations"]
        return "cordoned" in notes["gpupool.io/inventory"]

    eventually(is_told, within_s=90)
    return str(name)


def let_a_pod_wait(cluster: Cluster) -> None:
    """For a scheduler that is not there, and with a hostile reason."""
    pods = "/api/v1/namespaces/default/pods"
    made = pod("waits", container("c", "pause"), schedulerName="nobody")
    made["metadata"]["annotations"] = {"note": EVIL}
    status, found = call(cluster, "POST", pods, made)
    assert status == 201, found
    why = {"type": "PodScheduled", "status": "False", "message": f"GPUs: {EVIL}."}
    found["status"] = {"phase": "Pending", "conditions": [why]}
    assert call(cluster, "PUT", f"{pods}/waits/status", found)[0] == 200


async def test_reasons_of_cards_and_pods_do_not_run_either(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    node = close_a_card(cluster)
    let_a_pod_wait(cluster)
    paths = ("/overview", "/map", f"/nodes/{node}", "/waiting", "/pods", "/pods/default/waits")
    async with signed_in(open_browser, address) as visitor:
        for language in LANGUAGES:
            await visitor.speaks(language)
            for path in paths:
                await visitor.goes_to(path)
                found = "document.querySelector('#page').innerHTML.includes('&lt;script&gt;')"
                assert path == "/pods" or await visitor.page.until(found)
                assert await visitor.page.run("document.title") != "broken"
                wrong = "document.querySelectorAll('#page img, #page script').length"
                assert await visitor.page.run(wrong) == 0
        assert all(url.startswith((visitor.address, "data:")) for url in visitor.page.asked)
