"""Creating in a browser: templates of one's own, and a form with a slider, in both languages."""

from collections.abc import Iterator

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import signed_in
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually

pytestmark = pytest.mark.timeout(600)

APPS = "/apis/apps/v1/namespaces/default/deployments"
KEPT = "/api/v1/namespaces/default/configmaps/gpupool-console-templates"
WORDS = {
    "en": (
        "Create from template",
        "Keep as a template",
        "Create by a form",
        "Fits on 2 of 2 nodes",
    ),
    "zh-CN": ("使用模板创建", "另存为模板", "使用表单创建", "2 个节点中有 2 个可以容纳"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=SHARED_POOLS) as running:

        def has_cards() -> bool:
            nodes = call(running, "GET", "/api/v1/nodes")[1]["items"]
            return all("aliyun.com/gpu-mem" in node["status"]["allocatable"] for node in nodes)

        eventually(has_cards, within_s=120)
        yield running


@pytest.mark.parametrize("language", WORDS)
async def test_a_template_is_kept_and_loaded_and_the_button_follows_the_text(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    template, keep, *_ = WORDS[language]
    button = "document.querySelector('#page .buttons button.primary').textContent"
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(template, "nav.side")
        await visitor.is_at("/create")
        await visitor.clicks("configmap", "#page")
        await page.until(f"{button}.includes('1 ConfigMap')")
        await page.run("document.querySelector('#field-manifest').focus()")
        await page.type("\n---\nkind: Secret\n---\n")
        await page.until(f"{button}.includes('1 Secret')")
        await page.run("document.querySelector('#field-keep').focus()")
        await page.type("my-own")
        if language == "en":
            await visitor.clicks(keep, "#page")
        else:
            await page.press_enter()  # which must not create anything
        await page.until("location.search.includes('own=my-own')")
        await page.until(
            "document.querySelector('#field-manifest')?.value.includes('kind: Secret')"
        )
        assert "kind: Secret" in call(cluster, "GET", KEPT)[1]["data"]["my-own"]
        await page.click("#page .own a[data-dialogue]")
        await page.click("#dialogue button.danger")
        await page.until("!document.querySelector('#page .own')")
    assert not call(cluster, "GET", KEPT)[1].get("data")
    made = "/api/v1/namespaces/default/configmaps/my-settings"
    assert call(cluster, "GET", made)[0] == 404


@pytest.mark.parametrize("language", WORDS)
async def test_the_form_shows_what_fits_while_the_slider_moves(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    template, _, by_form, fits = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(template, "nav.side")
        await visitor.clicks(by_form, "#page")
        await visitor.is_at("/create/form")
        await page.until(f"document.querySelector('#fit')?.innerText.includes({fits!r})")
        await page.run(
            "(() => { const slider = document.querySelector('#field-units'); slider.value = 5;"
            " document.querySelector('#field-command').value = 'sleep 9999';"
            " slider.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        await page.until("document.querySelector('#preview').innerText.includes('gpu-mem: 5')")
        await page.run("document.querySelector('#field-units').scrollIntoView()")
        await page.click("#preview button.primary")
        await visitor.is_at("/deployments/default/my-app")
        await page.until("document.querySelector('#section-pods').innerText.includes('1/1')")
    made = call(cluster, "GET", f"{APPS}/my-app")[1]["spec"]["template"]["spec"]["containers"][0]
    assert made["resources"]["limits"] == {"aliyun.com/gpu-mem": "5"}
    assert made["command"] == ["sleep", "9999"]
    assert call(cluster, "DELETE", f"{APPS}/my-app")[0] == 200
    eventually(lambda: call(cluster, "GET", f"{APPS}/my-app")[0] == 404, within_s=60)


async def test_the_form_goes_on_in_the_editor(address: str, open_browser: OpenBrowser) -> None:
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to("/create/form")
        await visitor.clicks("Go on in the editor", "#preview")
        await visitor.is_at("/create")
        await visitor.page.shows("The API server would accept it: Deployment my-app")
        text = await visitor.page.run("document.querySelector('#field-manifest').value")
        assert "aliyun.com/gpu-mem: 3" in text
