"""A pod's page in a browser: what cannot be done says why, and the workload is one click away."""

from collections.abc import Iterator

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import signed_in
from tests.e2e.api import call
from tests.e2e.kubectl import eventually
from tests.e2e.objects import container, deployment, template

pytestmark = pytest.mark.timeout(600)

APPS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
WORDS = {
    "en": ("Logs", "Terminal", "It has no node yet."),
    "zh-CN": ("日志", "终端", "它还没有节点。"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=[{"name": "plain", "instanceType": "ecs.g6.large", "count": 1}]) as running:
        yield running


def pod_of(cluster: Cluster) -> str:
    eventually(lambda: bool(call(cluster, "GET", PODS)[1]["items"]), within_s=120)
    name: str = call(cluster, "GET", PODS)[1]["items"][0]["metadata"]["name"]
    return name


@pytest.mark.parametrize("language", WORDS)
async def test_a_pod_without_a_node_offers_neither_logs_nor_a_terminal(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    logs, terminal, why = WORDS[language]
    nowhere = template(container("c", "pause"), nodeSelector={"no": "such"})
    call(cluster, "POST", APPS, deployment("waits", template=nowhere))
    name = pod_of(cluster)
    async with signed_in(open_browser, address) as visitor:
        await visitor.speaks(language)
        await visitor.goes_to(f"/pods/default/{name}")
        grey = "[...document.querySelectorAll('#page [aria-disabled=true]')]"
        found = await visitor.page.until(
            f"{grey}.filter((each) => each.title === {why!r}).map((each) => each.innerText)"
        )
        assert found == [logs, terminal]
        # The pod is of a ReplicaSet, and that is of the Deployment that somebody has made.
        await visitor.clicks("Deployment waits", "#page")
        await visitor.is_at("/deployments/default/waits")
