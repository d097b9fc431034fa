"""The map in a real browser: the panel, a card cordoned, a running share resized."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gpupool.contract.allocation import allocation_of
from gpupool.contract.names import ANNOTATION_ALLOCATION, ANNOTATION_CORDONED_CARDS
from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import LANGUAGES, Visitor, signed_in
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually
from tests.e2e.objects import container, pod

pytestmark = pytest.mark.timeout(600)

PODS = "/api/v1/namespaces/default/pods"
WORDS = {
    "en": ("Resize", "Not resized", "Cordon", "Cordon card", "Uncordon", "Uncordon card"),
    "zh-CN": (
        "调整份额",
        "未调整",
        "设为不可调度",
        "将此卡设为不可调度",
        "恢复调度",
        "恢复此卡调度",
    ),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=SHARED_POOLS) as running:
        limits = {"limits": {"aliyun.com/gpu-mem": 3}}
        selector = {"cgpu.disable.isolation": "false"}
        made = pod("shared", container("c", "pause", resources=limits), nodeSelector=selector)
        assert call(running, "POST", PODS, made)[0] == 201
        path = f"{PODS}/shared/status"
        eventually(
            lambda: call(running, "GET", path)[1]["status"].get("phase") == "Running", within_s=90
        )
        yield running


class Held(NamedTuple):
    node: str
    uuid: str
    units: int


def shared(cluster: Cluster) -> Held:
    """What the pod holds."""
    found = call(cluster, "GET", f"{PODS}/shared")[1]
    allocation = allocation_of(found["metadata"]["annotations"][ANNOTATION_ALLOCATION])
    share = allocation.containers[0].shares[0]
    return Held(found["spec"]["nodeName"], share.uuid, share.units)


def orders(cluster: Cluster, node: str) -> dict[str, str]:
    annotations = call(cluster, "GET", f"/api/v1/nodes/{node}")[1]["metadata"]["annotations"]
    return dict(json.loads(annotations.get(ANNOTATION_CORDONED_CARDS, "{}")))


async def fill(visitor: Visitor, field: str, text: str) -> None:
    await visitor.page.run(f"document.querySelector('#field-{field}').value = {text!r}")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_running_share_is_resized_from_its_segment(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    resize, refused, *_ = WORDS[language]
    wanted = {"en": 5, "zh-CN": 4}[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/map")
        await page.click("a.segment")
        # The panel is part of the address, and the page was not loaded again.
        await page.until("location.search.includes('pod=default%2Fshared')")
        await page.until("document.activeElement.id === 'panel-title'")
        await visitor.clicks(resize, "#panel")
        await page.until("document.querySelector('#dialogue').open")
        await fill(visitor, "units", "99")
        await visitor.clicks(resize, "#dialogue")
        await page.until(f"document.querySelector('#dialogue').innerText.includes('{refused}')")
        await fill(visitor, "units", str(wanted))
        await visitor.clicks(resize, "#dialogue")
        await page.until("!document.querySelector('#dialogue').open")
        assert shared(cluster).units == wanted
        # It is still the map, and follows.
        await page.until(
            f"document.querySelector('.segment.free').innerText.includes({15 - wanted})"
        )


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_card_is_cordoned_and_uncordoned_from_the_map(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    _, _, cordon, do_cordon, uncordon, do_uncordon = WORDS[language]
    card = shared(cluster)
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/map")
        await page.run(f"document.getElementById('card-{card.uuid}-name').focus()")
        await page.press_enter()
        await visitor.clicks(cordon, "#panel")
        await page.until("document.querySelector('#dialogue').open")
        await fill(visitor, "reason", "loud <b>fan</b>")
        await visitor.clicks(do_cordon, "#dialogue")
        # As its agent has published it, in the panel and on the map.
        await page.until("document.querySelectorAll('.gpu.cordoned').length === 1")
        assert orders(cluster, card.node) == {card.uuid: "loud <b>fan</b>"}
        await page.shows("loud <b>fan</b>")
        await visitor.clicks(uncordon, "#panel")
        await page.until("document.querySelector('#dialogue').open")
        await visitor.clicks(do_uncordon, "#dialogue")
        await page.until("document.querySelectorAll('.gpu.cordoned').length === 0")
        assert orders(cluster, card.node) == {}


async def test_arrow_keys_lead_along_the_map_and_escape_closes_the_panel(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    uuid = shared(cluster).uuid
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/map")
        await page.run(f"document.getElementById('card-{uuid}-name').focus()")
        await page.press("ArrowRight", 39)
        await page.until("document.activeElement.classList.contains('segment')")
        await page.press_enter()
        await page.until("document.activeElement.id === 'panel-title'")
        await page.press("Escape", 27)
        await page.until("!document.getElementById('panel') && !location.search.includes('pod=')")
        # Where one was before.
        await page.until("document.activeElement.classList.contains('segment')")
        await page.run("history.back()")
        await page.until("!!document.getElementById('panel')")


async def test_pods_and_nodes_lead_to_their_card_and_back(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    card = shared(cluster)
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/pods/default/shared")
        await visitor.clicks(card.uuid)
        await visitor.is_at("/map")
        await page.until(f"document.getElementById('card-{card.uuid}').matches('.chosen')")
        await visitor.clicks(card.node, "#panel")
        await visitor.is_at(f"/nodes/{card.node}")
        await page.click("a.segment")
        await visitor.is_at("/pods/default/shared")


async def test_the_map_finds_room_on_one_card(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/map?free=15GiB")
        await visitor.page.shows("1 of 2 nodes have 15 GiB free on one card.")
        await visitor.goes_to("/map?free=much")
        await visitor.page.shows(
            'Wanted a number of GiB that is free on one card, such as 6, found "much".'
        )
        await visitor.goes_to("/map?colour=pool&pool=cgpu")
        await visitor.page.until("document.querySelectorAll('.node-line').length === 1")
        assert await visitor.page.run("document.querySelector('#map-colour').value") == "pool"


async def test_the_heat_view_follows_the_cluster_and_leads_to_nodes_by_keys(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    card = shared(cluster)
    follows = (
        "document.getElementById('heat-canvas').dataset.version"
        " === document.getElementById('heat').dataset.version"
    )
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/map?view=heat")
        before = await page.until(f"{follows} && document.getElementById('heat').dataset.version")
        limits = {"limits": {"aliyun.com/gpu-mem": 1}}
        selector = {"cgpu.disable.isolation": "false"}
        made = pod("late", container("c", "pause", resources=limits), nodeSelector=selector)
        assert call(cluster, "POST", PODS, made)[0] == 201
        await page.until(f"document.getElementById('heat').dataset.version !== {before!r}")
        await page.until(follows)
        # The first card is chosen; the pool of the pod comes first.
        await page.run("document.getElementById('heat-canvas').focus()")
        await page.press("+", 187)
        await page.until("document.getElementById('heat-now').textContent.includes('default/late')")
        await page.press("ArrowDown", 40)
        await page.until(
            f"!document.getElementById('heat-now').textContent.includes({card.node!r})"
        )
        await page.press("ArrowUp", 38)
        await page.until(f"document.getElementById('heat-now').textContent.includes({card.node!r})")
        await page.press_enter()
        await page.until(f"location.search.includes('node={card.node}')")
        await page.until("document.querySelectorAll('.node-line').length === 1")
        assert call(cluster, "DELETE", f"{PODS}/late")[0] == 200


async def test_a_click_on_a_square_leads_to_its_node(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/map?view=heat&colour=pool")
        await page.until("!!document.getElementById('heat-canvas').dataset.version")
        # The first square is at the left, below the name of its pool.
        box = await page.run(
            "(({x, y}) => [x, y])(document.getElementById('heat-canvas').getBoundingClientRect())"
        )
        at = {"x": box[0] + 20, "y": box[1] + 8 + 0.8 * 28 + 12}
        await page.command("Input.dispatchMouseEvent", type="mouseMoved", **at)
        await page.until("document.getElementById('heat-tip').textContent.includes('shared')")
        click = {**at, "button": "left", "clickCount": 1}
        await page.command("Input.dispatchMouseEvent", type="mousePressed", **click)
        await page.command("Input.dispatchMouseEvent", type="mouseReleased", **click)
        await page.until(f"location.search.includes('node={shared(cluster).node}')")


async def test_states_that_nobody_offers_are_a_filter_without_nodes(
    address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/map?health=%3Cb%3E")
        await visitor.page.shows("Nothing in this list is like that.")
