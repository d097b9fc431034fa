"""A service is made for a workload in a browser, and opened, in both languages."""

from collections.abc import Iterator

import aiohttp
import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import signed_in
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually
from tests.e2e.objects import shell, template, workload

pytestmark = pytest.mark.timeout(600)

APPS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = "/api/v1/namespaces/default/services"
ANSWERS = "python3 -m http.server 8888"
WORDS = {"en": ("Services", "Create service"), "zh-CN": ("服务", "创建服务")}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=SHARED_POOLS) as running:
        spec = {"template": template(shell(ANSWERS))}
        assert call(running, "POST", APPS, workload("Deployment", "web", 1, **spec))[0] == 201
        ready = f"{APPS}/web"
        eventually(
            lambda: call(running, "GET", ready)[1]["status"].get("readyReplicas"), within_s=120
        )
        yield running


@pytest.mark.parametrize("language", WORDS)
async def test_a_service_for_a_deployment_is_one_form_and_answers(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    services, create = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(services, "nav.side")
        await visitor.is_at("/services")
        await visitor.clicks(create, ".heading")
        await page.until("document.activeElement?.id === 'field-name'")
        await page.type("web")
        await page.run("document.querySelector('#field-workload').value = 'Deployment default/web'")
        await page.run("document.querySelector('#field-ports').value = '8081:8888'")
        await visitor.clicks(create, "#dialogue")
        await visitor.is_at("/services/default/web")
        link = await page.until("document.querySelector('a[target=_blank][href^=http]')?.href")
        await page.until("document.querySelector('#section-pods').innerText.includes('web-')")
        async with aiohttp.ClientSession() as session, session.get(link) as answer:
            assert answer.status == 200
    spec = call(cluster, "GET", f"{SERVICES}/web")[1]["spec"]
    assert spec["selector"] == {"app": "web"}
    assert spec["ports"][0]["targetPort"] == 8888
    assert call(cluster, "DELETE", f"{SERVICES}/web")[0] == 200
