"""An object is edited as YAML in a browser, in both languages."""

import json

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import Visitor, signed_in
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import shell, template, workload

pytestmark = pytest.mark.timeout(600)

APPS = "/apis/apps/v1/namespaces/default/deployments"
EVIL = "<img src=x onerror=document.title='broken'>"
WORDS = {
    "en": ("Edit YAML", "Show changes", "Save these changes", "must be greater than"),
    "zh-CN": ("编辑 YAML", "查看更改", "保存这些更改", "must be greater than"),
}


async def replaces(visitor: Visitor, old: str, new: str) -> None:
    area = "document.querySelector('#field-manifest')"
    await visitor.page.until(f"{area}?.value.includes({json.dumps(old)})")
    await visitor.page.run(
        f"{area}.value = {area}.value.replace({json.dumps(old)}, {json.dumps(new)})"
    )


@pytest.mark.parametrize("language", WORDS)
async def test_a_deployment_is_changed_after_a_mistake_and_a_look(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    edit, show, save, complaint = WORDS[language]
    name = f"edited-{language.lower()}"
    spec = {"template": template(shell("sleep 9999"), annotations={"note": EVIL})}
    assert call(cluster, "POST", APPS, workload("Deployment", name, 0, **spec))[0] == 201
    path = f"{APPS}/{name}"
    eventually(lambda: call(cluster, "GET", path)[1]["metadata"].get("annotations"), within_s=60)
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to(f"/deployments/default/{name}")
        await visitor.clicks(edit, ".heading")
        await replaces(visitor, "replicas: 0", "replicas: -7")
        await visitor.clicks(show, "#page")
        await page.shows(complaint)
        await page.until(
            "document.querySelector('.editor-layer .wrong')?.textContent.includes('replicas: -7')"
        )
        await replaces(visitor, "replicas: -7", f"replicas: 1\n  # {EVIL}")
        await visitor.clicks(show, "#page")
        await page.until(
            "document.querySelector('.diff .added')?.innerText.includes('replicas: 1')"
        )
        assert call(cluster, "GET", path)[1]["spec"]["replicas"] == 0
        await visitor.clicks(save, "#page")
        await visitor.is_at(f"/deployments/default/{name}")
        assert call(cluster, "GET", path)[1]["spec"]["replicas"] == 1
        await page.until("document.querySelector('#section-pods').innerText.includes('1/1')")
        assert await page.run("document.title") != "broken"
        assert await page.run("document.querySelectorAll('#page img').length") == 0


async def test_a_label_of_a_node_is_written_in_the_editor(
    cluster: Cluster, address: str, open_browser: OpenBrowser
) -> None:
    node = call(cluster, "GET", "/api/v1/nodes")[1]["items"][0]["metadata"]["name"]
    async with signed_in(open_browser, address) as visitor:
        await visitor.goes_to(f"/nodes/{node}")
        await visitor.clicks("Edit YAML", ".heading")
        await replaces(visitor, "  labels:\n", "  labels:\n    written: by-hand\n")
        await visitor.clicks("Show changes", "#page")
        await visitor.clicks("Save these changes", "#page")
        await visitor.is_at(f"/nodes/{node}")
    labels = call(cluster, "GET", f"/api/v1/nodes/{node}")[1]["metadata"]["labels"]
    assert labels["written"] == "by-hand"
