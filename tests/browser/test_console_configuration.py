"""ConfigMaps and Secrets in a browser, in both languages."""

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import signed_in
from tests.e2e.api import call

pytestmark = pytest.mark.timeout(600)

CORE = "/api/v1/namespaces/default"
WORDS = {
    "en": ("Secrets", "Show", "Create from template"),
    "zh-CN": ("保密字典", "显示", "使用模板创建"),
}


@pytest.mark.parametrize("language", WORDS)
async def test_a_secret_is_made_and_one_of_its_values_shown(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    secrets, show, template = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(secrets, "nav.side")
        await visitor.clicks(template, "#page")
        await page.until("document.querySelector('#field-manifest')?.value.includes('change-me')")
        await page.click("#page .buttons button.primary")
        await page.until("!location.pathname.endsWith('/create')")
        data = call(cluster, "GET", f"{CORE}/secrets/my-secret")[1]["data"]
        assert data == {"password": "Y2hhbmdlLW1l"}
        await visitor.goes_to("/secrets/default/my-secret")
        await page.shows("••••••")
        html = str(await page.run("document.documentElement.outerHTML"))
        assert "change-me" not in html
        assert "Y2hhbmdlLW1l" not in html
        await visitor.clicks(show, "#entries")
        await page.until("document.querySelector('#dialogue').open")
        await visitor.clicks(show, "#dialogue")
        await page.until(
            "document.querySelector('#dialogue .value')?.innerText.includes('change-me')"
        )
    assert call(cluster, "DELETE", f"{CORE}/secrets/my-secret")[0] == 200
