"""The click paths of the documents that begin with a cluster, and those about nodes and pools.

In both languages: a cluster with GPU nodes is made by the form, a node tells its cards by labels,
an application goes to them and another one avoids them; a pool is made by hand and grows; a node is
drained.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from tests.browser.chromium import OpenBrowser
from tests.browser.console_pages import Visitor, running_console, signed_in
from tests.e2e.api import call
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, deployment, template

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(900)]

WORDS = {
    "en": {
        "clusters": "Clusters",
        "create cluster": "Create cluster",
        "over": "Nodes: 51, and the quota allows 40.",
        "refused": "Quota nodes-per-cluster is 40, wanted 51.",
        "running": "Running",
        "nodes": "Nodes",
        "deployments": "Deployments",
        "template": "Create from template",
        "pods": "Pods",
        "delete": "Delete",
        "delete cluster": "Delete cluster {name}",
        "pools": "Node pools",
        "create pool": "Create node pool",
        "active": "Active",
        "scale": "Scale out",
        "drain": "Drain",
        "held": "What holds it back",
        "drained": "Drained",
        "schedulable": "Set schedulable",
    },
    "zh-CN": {
        "clusters": "集群",
        "create cluster": "创建集群",
        "over": "节点：51，配额为 40。",
        "refused": "配额 nodes-per-cluster 为 40，需要 51。",
        "running": "运行中",
        "nodes": "节点",
        "deployments": "无状态",
        "template": "使用模板创建",
        "pods": "容器组",
        "delete": "删除",
        "delete cluster": "删除集群 {name}",
        "pools": "节点池",
        "create pool": "创建节点池",
        "active": "已激活",
        "scale": "扩容",
        "drain": "排水",
        "held": "受阻原因",
        "drained": "已排空",
        "schedulable": "设为可调度",
    },
}
NAMES = {"en": "clusters-en", "zh-CN": "clusters-zh"}


@dataclass
class Machine:
    address: str  # of the console
    home: Path

    def kubeconfig(self, name: str) -> Path:
        return self.home / "clusters" / name / "kubeconfig"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A console for a cluster without nodes, on a machine that has no other clusters."""
    home = tmp_path_factory.mktemp("home")
    env = {"GPUPOOL_HOME": str(home)}
    with Cluster(pools=[]) as cluster, running_console(cluster.kubeconfig, env=env) as found:
        yield Machine(found, home)
    for name in NAMES.values():  # also after a test that failed half way
        reset = (sys.executable, "-m", "gpupool", "reset", "--name", name, "--yes")
        subprocess.run(reset, env={**os.environ, **env}, capture_output=True, check=False)


async def fills(visitor: Visitor, **fields: str) -> None:
    """As somebody who types: each field tells that it has changed. `_` stands for `-`."""
    for name, value in fields.items():
        field = f"document.getElementById({json.dumps('field-' + name.replace('_', '-'))})"
        await visitor.page.until(f"!!{field}")
        await visitor.page.run(
            f"(() => {{ const field = {field}; field.value = {json.dumps(value)};"
            " field.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )


async def row_has(visitor: Visitor, row: str, words: str) -> None:
    found = f"document.getElementById({json.dumps(f'table-{row}')})"
    await visitor.page.until(f"{found} && {found}.innerText.includes({json.dumps(words)})")


async def make_cluster(visitor: Visitor, words: dict[str, str], name: str) -> None:
    await visitor.clicks(words["clusters"], "nav.side")
    await visitor.clicks(words["create cluster"], "#page")
    # Worker nodes of family gn5, as in the document; then others, with a Tesla M40 and without.
    await fills(visitor, name=name, masters_count="1", pool1_count="50")
    await visitor.page.shows(words["over"])
    await visitor.clicks(words["create cluster"], "#page")
    await visitor.page.shows(words["refused"])
    await fills(visitor, pool1_type="ecs.gn5-c4g1.xlarge", pool1_count="2")
    # Most clusters need one pool: the others are folded.
    hidden = "!document.getElementById('field-pool{}-name').checkVisibility()"
    for number in (2, 3):
        assert await visitor.page.run(hidden.format(number))
        await visitor.page.click(f"#more-{number} summary")
    await fills(visitor, pool2_name="m40", pool2_type="ecs.gn4-c4g1.xlarge", pool2_count="1")
    await fills(visitor, pool3_name="plain", pool3_type="ecs.g6.2xlarge", pool3_count="1")
    await visitor.clicks(words["create cluster"], "#page")
    await visitor.is_at("/clusters")
    # It gets ready before one's eyes.
    await row_has(visitor, f"gpupool-{name}", words["running"])
    await row_has(visitor, f"gpupool-{name}", "5/5")


async def create_by_template(visitor: Visitor, words: dict[str, str], sample: str) -> None:
    await visitor.clicks(words["deployments"], "nav.side")
    await visitor.clicks(words["template"], "#page")
    await visitor.page.until("location.pathname.endsWith('/create')")
    await visitor.clicks(sample, "#page")
    await visitor.page.until("document.querySelector('#field-manifest').value.length > 100")
    await visitor.page.click("#page .buttons button.primary")
    await visitor.page.until("!location.pathname.endsWith('/create')")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("38", "Nodes: 39 of 40"),
        # 42 routes are allowed already: the advice must not lower that quota.
        ("41", "Nodes: 42, and the quota allows 40. Raise it with: {set} nodes-per-cluster=42"),
        (
            "50",
            "Nodes: 51, and the quota allows 40. "
            "Raise it with: {set} nodes-per-cluster=51 routes-per-cluster=51",
        ),
        *((wrong, "Nodes: 1 of 40") for wrong in ("-5", "2.5", "1e3", "x", "")),
    ],
)
async def test_the_form_counts_nodes_as_they_are_typed(
    open_browser: OpenBrowser, machine: Machine, typed: str, said: str
) -> None:
    async with signed_in(open_browser, machine.address) as visitor:
        await visitor.goes_to("/create/cluster")
        await visitor.page.until("document.querySelector('#quota')?.innerText")
        await fills(visitor, masters_count="1", pool1_count=typed)
        shown = await visitor.page.run("document.querySelector('#quota').innerText")
    assert shown == said.format(set="gpupool quota set")


@pytest.mark.parametrize("language", ["zh-CN", "en"])
async def test_a_gpu_cluster_is_made_and_node_labels_lead_applications(
    machine: Machine,
    open_browser: OpenBrowser,
    kubectl_program: Path,
    tmp_path: Path,
    language: str,
) -> None:
    words, name = WORDS[language], NAMES[language]
    async with signed_in(open_browser, machine.address) as visitor:
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await make_cluster(visitor, words, name)
        await visitor.clicks(name, "#table")
        await visitor.is_at(f"/clusters/gpupool-{name}/overview")
        kubectl = Kubectl(kubectl_program, machine.kubeconfig(name), tmp_path)
        node = kubectl("get", "nodes", "-l", "node.gpupool.io/pool=m40", "-o", "name").strip()
        node = node.removeprefix("node/")
        # The node's page shows the labels that the document reads.
        await visitor.clicks(words["nodes"], "nav.side")
        await visitor.page.shows("1 × Tesla P100-PCIE-16GB")
        await visitor.page.click(f"#table a[href$='/nodes/{node}']")
        for label in ("count=1", "mem=12209MiB", "name=Tesla-M40"):
            await visitor.page.shows(f"aliyun.accelerator/nvidia_{label}")
        await create_by_template(visitor, words, "notebook")
        await create_by_template(visitor, words, "not-on-gpu-nodes")
        await visitor.clicks(words["pods"], "nav.side")
        await visitor.page.shows("not-in-gpu-node")
        # The same objects as by kubectl: each is on a node that it asked for.
        kubectl.wait("condition=Ready", "pod", "-l", "app=tf-notebook")
        kubectl.wait("condition=Ready", "pod/not-in-gpu-node")
        where = "jsonpath={.items[0].spec.nodeName}"
        assert kubectl("get", "pod", "-l", "app=tf-notebook", "-o", where) == node
        where = "jsonpath={.spec.nodeName}"
        plain = kubectl("get", "pod", "not-in-gpu-node", "-o", where)
        assert "accelerator" not in kubectl("get", "node", plain, "--show-labels")
        await visitor.page.shows(plain)
        # And the cluster goes, when its name is typed.
        await visitor.clicks(words["clusters"], "nav.side")
        await visitor.clicks(words["delete"], f"#table-gpupool-{name}")
        await visitor.page.until("document.querySelector('#dialogue').open")
        await visitor.page.run("document.querySelector('#field-typed-name').focus()")
        await visitor.page.type(name)
        await visitor.clicks(words["delete cluster"].format(name=name), "#dialogue")
        await visitor.goes_to("/clusters")
        await visitor.page.until(f"!document.getElementById('table-gpupool-{name}')")
    assert not machine.kubeconfig(name).exists()


POOL = "/apis/gpupool.io/v1alpha1/nodepools/byhand"
APPS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pools = [{"name": "gpu", "instanceType": "ecs.gn6v-c8g1.2xlarge", "count": 1}]
    with Cluster(pools=pools) as running:
        yield running


@pytest.mark.parametrize("language", ["zh-CN", "en"])
async def test_a_pool_with_the_fields_of_the_document_is_made_and_grows(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    words = WORDS[language]
    async with signed_in(open_browser, address) as visitor:
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(words["pools"], "nav.side")
        await visitor.clicks(words["create pool"], "#page")
        await visitor.page.until("document.querySelector('#dialogue').open")
        await fills(visitor, name="byhand", count="0", os="Alibaba Cloud Linux 2.x", group="rg")
        await fills(visitor, labels="cgpu=true\ncgpu.disable.isolation=true", tags="team=a")
        await fills(visitor, taints="gpu=yes:NoSchedule")
        await visitor.clicks(words["create pool"], "#dialogue")
        await row_has(visitor, "byhand", words["active"])
        spec = call(cluster, "GET", POOL)[1]["spec"]
        assert spec["labels"] == {"cgpu": "true", "cgpu.disable.isolation": "true"}
        assert (spec["count"], spec["os"]) == (0, "Alibaba Cloud Linux 2.x")
        assert (spec["tags"], spec["resourceGroup"]) == ({"team": "a"}, "rg")
        await visitor.clicks(words["scale"], "#table-byhand")
        await visitor.page.until("document.querySelector('#dialogue').open")
        await fills(visitor, count="1")
        await visitor.clicks(words["scale"], "#dialogue")
        await row_has(visitor, "byhand", "1/1")
    assert call(cluster, "DELETE", POOL)[0] == 200
    eventually(lambda: call(cluster, "GET", POOL)[0] == 404, within_s=120)


@pytest.mark.parametrize("language", ["zh-CN", "en"])
async def test_a_node_is_drained_and_the_page_tells_what_holds_it_back(
    cluster: Cluster, address: str, open_browser: OpenBrowser, language: str
) -> None:
    words = WORDS[language]
    budget = {
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    assert (
        call(cluster, "POST", APPS, deployment("web", template=template(container("c", "pause"))))[
            0
        ]
        == 201
    )
    assert call(cluster, "POST", BUDGETS, budget)[0] == 201
    eventually(
        lambda: call(cluster, "GET", f"{BUDGETS}/keep")[1].get("status", {}).get("currentHealthy"),
        within_s=120,
    )
    node = call(cluster, "GET", "/api/v1/nodes")[1]["items"][0]["metadata"]["name"]
    async with signed_in(open_browser, address) as visitor:
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(words["nodes"], "nav.side")
        await visitor.page.click(f"#table a[href$='/nodes/{node}']")
        await visitor.is_at(f"/nodes/{node}")
        await visitor.clicks(words["drain"], ".heading")
        await visitor.page.until("document.querySelector('#dialogue').open")
        await visitor.clicks(words["drain"], "#dialogue")
        await visitor.is_at("/draining")
        await visitor.page.shows("The disruption budget keep needs 1 healthy pods")
        assert words["held"] in await visitor.text()
        assert call(cluster, "DELETE", f"{BUDGETS}/keep")[0] == 200
        await visitor.page.shows(words["drained"])
        await visitor.page.shows("1 / 1")
        path = f"/api/v1/nodes/{node}"
        assert call(cluster, "GET", path)[1]["spec"]["unschedulable"]
        await visitor.clicks(words["schedulable"], ".heading")
        await visitor.page.until("document.querySelector('#dialogue').open")
        await visitor.clicks(words["schedulable"], "#dialogue")
        await visitor.page.until("!document.querySelector('#dialogue').open")
        assert not call(cluster, "GET", path)[1]["spec"].get("unschedulable")
    assert call(cluster, "DELETE", f"{APPS}/web")[0] == 200
    pods = "/api/v1/namespaces/default/pods"
    eventually(lambda: not call(cluster, "GET", pods)[1]["items"], within_s=120)
