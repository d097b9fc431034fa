"""The console in a real browser: live, by keyboard, on small screens, in both languages."""

from collections.abc import Iterator

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import LANGUAGES, signed_in
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually
from tests.e2e.objects import container, pod

pytestmark = pytest.mark.timeout(600)

PODS = "/api/v1/namespaces/default/pods"
PAGES = (
    "/overview",
    "/clusters",
    "/create/cluster",
    "/pools",
    "/pools/cgpu",
    "/pools/cgpu/edit",
    "/map",
    "/services",
    "/nodes",
    "/pods",
    "/deployments",
    "/daemonsets",
    "/jobs",
    "/cronjobs",
    "/configmaps",
    "/secrets",
    "/create?sample=job",
    "/create/form",
    "/waiting",
    "/events",
    "/search?q=f",
    "/pods/default/first/logs",
    "/pods/default/first/terminal",
    "/pods/default/first",
    "/pods/default/large",
)
# Into the margin of the page, which hides it from the width of the whole.
TOO_WIDE = """(() => {
  const page = document.getElementById("page");
  const edge = page.getBoundingClientRect().right + 1;
  return [...page.querySelectorAll("table, form, dl, ul, section")]
    .filter((each) => each.getBoundingClientRect().right > edge)
    .map((each) => each.id || each.className);
})()"""
EVIL = "<img src=x onerror=document.title='broken'>"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=SHARED_POOLS) as running:
        submit(running, "first", 3)
        submit(running, "large", 14)
        path = f"{PODS}/first"
        eventually(lambda: call(running, "GET", path)[1]["spec"].get("nodeName"), within_s=60)
        yield running


def submit(cluster: Cluster, name: str, units: int) -> None:
    limits = {"limits": {"aliyun.com/gpu-mem": units}}
    selector = {"cgpu.disable.isolation": "false"}
    made = pod(name, container("c", "pause", resources=limits), nodeSelector=selector)
    made["metadata"]["annotations"] = {"note": EVIL}
    assert call(cluster, "POST", PODS, made)[0] == 201


async def test_a_change_appears_and_what_the_reader_does_is_left_alone(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/pods")
        await visitor.clicks("as kubectl")
        await page.run("window.same = document.querySelector('#table tbody tr')")
        # Half typed, and not sent yet: the field is not part of the form's own events here.
        await page.run(
            "(() => { const q = document.querySelector('#table-q'); q.focus();"
            " q.value = 'half typ'; q.setSelectionRange(2, 4); })()"
        )
        submit(cluster, "second", 2)
        await page.shows("second")
        state = await page.run(
            "[document.activeElement.id, document.activeElement.value,"
            " document.activeElement.selectionStart, document.activeElement.selectionEnd,"
            " window.same.isConnected, document.querySelector('#as-kubectl').open]"
        )
        assert state == ["table-q", "half typ", 2, 4, True, True]
        assert call(cluster, "DELETE", f"{PODS}/second")[0] == 200
        await page.until("!document.querySelector('#table').innerText.includes('second')")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_pages_fit_every_screen(
    address: str, open_browser: OpenBrowser, language: str
) -> None:
    async with signed_in(open_browser, address) as visitor:
        await visitor.speaks(language)
        for path in PAGES:
            await visitor.goes_to(path)
            for width in (360, 390, 899, 900, 1280, 1440, 3840):
                await visitor.has_window(width)
                wide = await visitor.page.run("document.documentElement.scrollWidth")
                assert wide <= width, f"{path} is {wide} px wide on a screen of {width}"
                too_wide = await visitor.page.run(TOO_WIDE)
                assert not too_wide, f"{path} at {width} px: {too_wide} stand over the edge"


async def test_a_node_is_cordoned_with_the_keyboard_alone(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    node = call(cluster, "GET", f"{PODS}/first")[1]["spec"]["nodeName"]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/nodes")
        button = f"document.getElementById('table-{node}').querySelector('.row-actions a')"
        await page.run(f"{button}.focus()")
        await page.press_enter()
        await page.until("document.querySelector('#dialogue').open")
        await page.shows("It gets no new pods. Pods that run on it stay.")
        await page.until("document.activeElement.innerText === 'Set unschedulable'")
        await page.press_enter()
        await page.until("!document.querySelector('#dialogue').open")
        await page.shows(f"Node {node} gets no new pods.")
        # The row changes by itself, and its button is another one now.
        await page.until(f"{button}.innerText === 'Set schedulable'")
        assert call(cluster, "GET", f"/api/v1/nodes/{node}")[1]["spec"]["unschedulable"]
        await page.run(f"{button}.focus()")
        await page.press_enter()
        # The button in the row has the same words as the one in the dialogue.
        await page.until("document.querySelector('#dialogue').open")
        await page.until("document.activeElement.innerText === 'Set schedulable'")
        await page.press_enter()
        await page.until(f"{button}.innerText === 'Set unschedulable'")


async def test_a_row_that_moves_keeps_the_focus_of_what_is_in_it(
    address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.goes_to("/nodes")
        await page.run(
            """(async () => {
              const { morph } = await import(
                document.querySelector('script[type=module]').src.replace(/[^/]*$/, 'morph.js'));
              const list = document.createElement('ul');
              document.body.append(list);
              morph(list, '<li id="a"><a href="#" id="x">a</a></li><li id="b">b</li>');
              document.getElementById('x').focus();
              morph(list, '<li id="b">b</li><li id="a"><a href="#" id="x">a</a></li>');
              window.kept = document.activeElement.id + ' ' + list.textContent;
            })()"""
        )
        await page.until("window.kept === 'x ba'")


async def test_texts_of_users_are_never_markup(address: str, open_browser: OpenBrowser) -> None:
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/pods/default/first")
        await visitor.clicks("YAML")
        await visitor.page.shows(EVIL)
        assert await visitor.page.run("document.title") != "broken"
        assert await visitor.page.run("document.querySelectorAll('#page img').length") == 0
        origin = visitor.address
        assert all(url.startswith((origin, "data:")) for url in visitor.page.asked)


async def test_the_pages_speak_chinese(address: str, open_browser: OpenBrowser) -> None:
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/overview")
        await visitor.clicks("中文")
        await visitor.page.shows("概览")
        await visitor.clicks("节点", "nav.side")
        await visitor.page.shows("节点池")
        await visitor.clicks("容器组", "nav.side")
        await visitor.page.shows("GPU 卡 0：3226 MiB，显存隔离")
        await visitor.goes_to("/pods/default/large")
        await visitor.page.shows("正在等待一张卡的 14 GiB 显存。")


async def test_a_session_that_is_over_leads_to_the_sign_in_page_and_back(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/pods")
        # As in another tab.
        # Not waited for: the page may be gone before the answer is there.
        await visitor.page.run("void fetch('/sign-out', {method: 'POST'})")
        submit(cluster, "third", 1)
        await visitor.page.until("location.pathname === '/sign-in'")
        assert str(await visitor.page.run("location.search")).endswith("/pods")
        assert call(cluster, "DELETE", f"{PODS}/third")[0] == 200


async def test_forms_of_the_pages_are_accepted(address: str, open_browser: OpenBrowser) -> None:
    """Without a script, as a page of its own: the browser has to say where the form comes from."""
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/create")
        await visitor.page.run("document.querySelector('#field-manifest').value = 'a: ['")
        await visitor.clicks("Dry run", "#page")
        await visitor.page.shows("not valid YAML")
        await visitor.page.until("!!document.querySelector('.editor-layer .wrong')")
        await visitor.clicks("Sign out")
        await visitor.page.until("location.pathname === '/sign-in'")
