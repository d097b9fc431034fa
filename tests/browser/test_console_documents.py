"""The click paths of the documents, in the console, in both languages."""

import re
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import Visitor, signed_in
from tests.e2e.api import call
from tests.e2e.kubectl import Kubectl, eventually

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(900)]

POOLS = [{"name": "gpu", "instanceType": "ecs.gn5-c4g1.xlarge", "count": 1}]
WORDS = {
    "en": {
        "pools": "Node pools",
        "create pool": "Create node pool",
        "active": "Active",
        "stateful": "StatefulSets",
        "deployments": "Deployments",
        "template": "Create from template",
        "create": "Create",
        "dry": "Dry run",
        "isolated": "card 0: 3226 MiB, isolation: limiter",
        "open": "card 0: 3226 MiB, isolation: none",
        "pods": "Pods",
        "services": "Services",
        "line": "line 1:",
    },
    "zh-CN": {
        "pools": "节点池",
        "create pool": "创建节点池",
        "active": "已激活",
        "stateful": "有状态",
        "deployments": "无状态",
        "template": "使用模板创建",
        "create": "创建",
        "dry": "试运行",
        "isolated": "GPU 卡 0：3226 MiB，显存隔离：限制器",
        "open": "GPU 卡 0：3226 MiB，显存隔离：无",
        "pods": "容器组",
        "services": "服务",
        "line": "第 1 行：",
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        yield running


async def create_pool(visitor: Visitor, words: dict[str, str], preset: str) -> None:
    await visitor.clicks(words["pools"], "nav.side")
    await visitor.clicks(f"+ {preset}")
    await visitor.page.until("document.querySelector('#dialogue').open")
    name = await visitor.page.run("document.querySelector('#field-name').value")
    assert name == preset
    await visitor.clicks(words["create pool"], "#dialogue")
    await visitor.page.until("!document.querySelector('#dialogue').open")
    row = f"document.getElementById('table-{preset}')"
    await visitor.page.until(f"{row} && {row}.innerText.includes('{words['active']}')")


async def create_from_template(
    visitor: Visitor, words: dict[str, str], menu: str, sample: str
) -> None:
    await visitor.clicks(words[menu], "nav.side")
    await visitor.clicks(words["template"], "#page")
    await visitor.page.until("location.pathname.endsWith('/create')")
    await visitor.clicks(sample, "#page")
    await visitor.page.until("document.querySelector('#field-manifest').value.length > 100")
    button = "#page .buttons button.primary"
    said = await visitor.page.run(f"document.querySelector({button!r}).textContent")
    # It says what it will do: Create 2 StatefulSet.
    assert re.match(rf"{words['create']} \d [A-Z]", said)
    await visitor.page.click(button)


@pytest.mark.parametrize("language", ["zh-CN", "en"])
async def test_two_pools_and_two_tasks_that_share_gpus(
    cluster: Cluster,
    address: str,
    open_browser: OpenBrowser,
    kubectl_program: Path,
    tmp_path: Path,
    language: str,
) -> None:
    words = WORDS[language]
    kubectl = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)
    async with signed_in(open_browser, address) as visitor:
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await create_pool(visitor, words, "cgpu")
        await create_pool(visitor, words, "cgpu-no-isolation")
        await create_from_template(visitor, words, "stateful", "shared-gpus")
        await visitor.page.until("location.pathname.endsWith('/statefulsets')")
        await visitor.page.shows("cgpu-test-no-isolation")
        await visitor.clicks(words["pods"], "nav.side")
        await visitor.page.shows(words["isolated"])
        await visitor.page.shows(words["open"])
        # The same objects as by kubectl: what each sees of its card.
        for pod, memory in (("cgpu-test-0", " 3226MiB"), ("cgpu-test-no-isolation-0", "16130MiB")):
            kubectl.wait("condition=Ready", f"pod/{pod}")
            assert f"{memory} |" in kubectl("exec", pod, "--", "nvidia-smi")
    kubectl("delete", "statefulset", "cgpu-test", "cgpu-test-no-isolation")
    kubectl("delete", "nodepool", "cgpu", "cgpu-no-isolation")


@pytest.mark.parametrize("language", ["zh-CN", "en"])
async def test_a_notebook_is_created_by_template_and_opened_from_services(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    words = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await create_from_template(visitor, words, "deployments", "notebook-service")
        await visitor.page.until("location.pathname.endsWith('/deployments')")
        await visitor.page.shows("1/1")
        await visitor.clicks(words["services"], "nav.side")
        link = await visitor.page.until(
            "document.querySelector('a[target=_blank][href^=http]')?.href"
        )

        async def answers() -> bool:
            async with aiohttp.ClientSession() as session, session.get(link) as answer:
                return answer.status == 200

        assert re.match(r"http://127\.", link)
        assert await answers()
    for path in (
        "/apis/apps/v1/namespaces/default/deployments",
        "/api/v1/namespaces/default/services",
    ):
        assert call(cluster, "DELETE", f"{path}/tf-notebook")[0] == 200
    pods = "/api/v1/namespaces/default/pods"
    eventually(lambda: not call(cluster, "GET", pods)[1]["items"], within_s=120)
