"""The events page and the search box in a real browser."""

from collections.abc import Iterator

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import LANGUAGES, running_console, signed_in
from tests.browser.test_console_pods import pictures
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually
from tests.e2e.objects import container, pod, service

pytestmark = pytest.mark.timeout(900)

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
EVENTS = "/api/v1/namespaces/default/events"
EVIL = "<img src=x onerror=document.title='broken'>"
WORDS = {"en": ("Events", "Warning", "web-front"), "zh-CN": ("事件", "告警", "web-front")}


def fill(cluster: Cluster) -> None:
    for name in ("web-front", "web-back"):
        assert call(cluster, "POST", PODS, pod(name, container("c", "pause")))[0] == 201
    assert call(cluster, "POST", SERVICES, service("web-service"))[0] == 201
    event = {
        "metadata": {"name": "evil"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web-front"},
        "type": "Warning",
        "reason": EVIL,
        "message": EVIL,
    }
    assert call(cluster, "POST", EVENTS, event)[0] == 201
    path = f"{PODS}/web-front"
    eventually(lambda: call(cluster, "GET", path)[1]["spec"].get("nodeName"), within_s=120)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Cluster(pools=SHARED_POOLS) as cluster:
        fill(cluster)
        with running_console(cluster.kubeconfig) as found:
            yield found


@pytest.mark.parametrize("language", LANGUAGES)
async def test_events_are_filtered_and_lead_to_their_object(
    address: str, open_browser: OpenBrowser, language: str
) -> None:
    events, warning, name = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(events, "nav.side")
        await page.shows(EVIL)
        await page.shows(warning)
        await pictures(page, f"events-{language}")
        await visitor.goes_to("/events?type=Warning&q=web-front")
        assert await page.run("document.querySelectorAll('#page img').length") == 0
        assert await page.run("document.querySelectorAll('#table tbody tr').length") == 1
        await visitor.clicks(name, "#table")
        await page.until("location.pathname.endsWith('/pods/default/web-front')")
        assert await page.run("document.title") != "broken"


@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_object_is_found_from_any_page_with_the_keyboard_alone(
    address: str, open_browser: OpenBrowser, language: str
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        for text, downs, end in (
            ("web-front", 0, "/pods/default/web-front"),
            ("web-", 1, "/pods/default/web-front"),  # web-back, web-front, web-service
            ("web-service", 0, "/services/default/web-service"),
            ("cgpu-no", 0, "/pools/cgpu-no-isolation"),
        ):
            await visitor.goes_to("/map")
            await page.press("k", 75, ctrl=True)
            await page.until("document.activeElement.matches('#search input')")
            await page.type(text)
            await page.until(
                f"document.querySelector('#found li a')?.textContent.startsWith({text!r})"
            )
            for _ in range(downs):
                await page.press("ArrowDown", 40)
            if downs:
                await pictures(page, f"search-{language}")
            await page.press_enter()
            await page.until(f"location.pathname.endsWith({end!r})")
        await visitor.goes_to("/map")
        await page.press("k", 75, ctrl=True)
        await page.type("<b>nobody")
        await page.until("!!document.querySelector('#search [role=status]').textContent")
