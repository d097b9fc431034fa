"""The form of a new workload and its YAML, both ways, in both languages."""

import json

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import Visitor, signed_in
from tests.browser.test_console_clusters import fills
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

pytestmark = pytest.mark.timeout(600)

MADE = "/apis/apps/v1/namespaces/default/deployments/two-ways"
WORDS = {
    "en": {
        "kept": "the form has no field for it: spec.template.spec.containers[0].workingDir",
        "create": "Create 1 Deployment",
        "cannot": "The form cannot show this: Pods wanted.",
    },
    "zh-CN": {
        "kept": "按 YAML 原样保留：spec.template.spec.containers[0].workingDir",
        "create": "创建 1 Deployment",
        "cannot": "表单无法显示：期望的容器组数量。",
    },
}


async def yaml_has(visitor: Visitor, words: str) -> None:
    area = "document.querySelector('#field-manifest')"
    await visitor.page.until(f"{area}.value.includes({json.dumps(words)})")


async def types_yaml(visitor: Visitor, old: str, new: str) -> None:
    """As somebody who types into the editor."""
    area = "document.querySelector('#field-manifest')"
    await visitor.page.run(
        f"(() => {{ const area = {area}; area.focus();"
        f" area.value = area.value.replace({json.dumps(old)}, {json.dumps(new)});"
        " area.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


async def field_is(visitor: Visitor, name: str, value: str) -> None:
    field = f"document.getElementById({json.dumps('field-' + name)})"
    await visitor.page.until(f"{field}.value === {json.dumps(value)}")


@pytest.mark.parametrize("language", WORDS)
async def test_changes_of_the_form_and_of_the_yaml_come_to_the_other_side(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    words = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        page = visitor.page
        await visitor.speaks(language)
        await visitor.goes_to("/create/form")
        await yaml_has(visitor, "name: my-app")
        await fills(visitor, name="two-ways", replicas="2")
        await yaml_has(visitor, "replicas: 2")
        # What is typed as YAML comes into the fields, with what the form has no field for.
        await types_yaml(visitor, "replicas: 2", "replicas: 1 # one will do")
        await field_is(visitor, "replicas", "1")
        await types_yaml(visitor, "gpu-mem: 3", "gpu-mem: 2")
        await field_is(visitor, "units", "2")
        await page.until("document.querySelector('output[for=field-units]').textContent === '2'")
        await yaml_has(visitor, "# one will do")
        await types_yaml(visitor, "image: busybox", "image: busybox\n        workingDir: /tmp")
        await page.shows(words["kept"])
        # And a change of the form keeps it.
        await fills(visitor, env="A=1")
        await yaml_has(visitor, "value: '1'")
        await yaml_has(visitor, "workingDir: /tmp")
        # A mistake is said, and marked at its line; fields stay.
        await types_yaml(visitor, "replicas: 1", "replicas: 1\n  bad: [")
        await page.until("!!document.querySelector('#preview .line.wrong')")
        await field_is(visitor, "env", "A=1")
        await types_yaml(visitor, "replicas: 1\n  bad: [", "replicas: many")
        await page.shows(words["cannot"])
        await types_yaml(visitor, "replicas: many", "replicas: 1")
        await page.until("!document.querySelector('#preview .line.wrong')")
        await visitor.clicks(words["create"], "#preview")
        await visitor.is_at("/deployments/default/two-ways")
    container = call(cluster, "GET", MADE)[1]["spec"]["template"]["spec"]["containers"][0]
    assert container["workingDir"] == "/tmp"
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["resources"]["limits"] == {"aliyun.com/gpu-mem": "2"}
    assert call(cluster, "DELETE", MADE)[0] == 200
    eventually(lambda: call(cluster, "GET", MADE)[0] == 404, within_s=60)
