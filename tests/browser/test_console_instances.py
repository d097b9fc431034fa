"""A cluster of existing instances, by clicks and in both languages: the other way of the document
to get worker nodes. They are free again when the cluster is deleted."""

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
from tests.browser.console_pages import running_console, signed_in
from tests.browser.test_console_clusters import fills, row_has

pytestmark = pytest.mark.timeout(600)

WORDS = {
    "en": {
        "clusters": "Clusters",
        "instances": "Existing instances",
        "add": "Add instances",
        "free": "2 of 2 instances are free.",
        "used": "In use",
        "create cluster": "Create cluster",
        "nodes": "Nodes: 2 of 40",
        "running": "Running",
        "none": "Choose at least one instance.",
        "balancers": "Load balancers: 2 of 60",
    },
    "zh-CN": {
        "clusters": "集群",
        "instances": "已有实例",
        "add": "添加实例",
        "free": "2 个实例中有 2 个空闲。",
        "used": "使用中",
        "create cluster": "创建集群",
        "nodes": "节点：2 / 40",
        "running": "运行中",
        "none": "请至少选择一个实例。",
        "balancers": "负载均衡：2 / 60",
    },
}
NAMES = {"en": "instances-en", "zh-CN": "instances-zh"}


@dataclass
class Place:
    address: str  # of the console
    env: dict[str, str]

    def gpupool(self, *words: str) -> str:
        command = (sys.executable, "-m", "gpupool", *words)
        env = {**os.environ, **self.env}
        return subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=120
        ).stdout

    def owners(self) -> dict[str, str | None]:
        found = json.loads(self.gpupool("machines", "-o", "json"))["items"]
        return {each["name"]: each["cluster"] for each in found}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    env = {"GPUPOOL_HOME": str(tmp_path / "home")}
    with Cluster(pools=[]) as cluster, running_console(cluster.kubeconfig, env=env) as address:
        found = Place(address, env)
        yield found
        for name in NAMES.values():  # also after a test that failed half way
            found.gpupool("reset", "--name", name, "--yes")


@pytest.mark.parametrize("language", ["zh-CN", "en"])
async def test_a_cluster_is_made_of_existing_instances(
    place: Place, open_browser: OpenBrowser, language: str
) -> None:
    words, name = WORDS[language], NAMES[language]
    async with signed_in(open_browser, place.address) as visitor:
        await visitor.speaks(language)
        await visitor.goes_to("/overview")
        await visitor.clicks(words["clusters"], "nav.side")
        await visitor.clicks(words["instances"], "#page")
        await visitor.clicks(words["add"], "#page")
        await visitor.page.until("document.querySelector('#dialogue').open")
        await fills(visitor, type="ecs.gn5-c4g1.xlarge", count="2")
        await visitor.clicks(words["add"], "#dialogue")
        await visitor.page.shows(words["free"])
        await visitor.clicks(words["clusters"], "nav.side")
        await visitor.clicks(words["create cluster"], "#page")
        # Without scripts of ours: one list of fields goes, the other comes.
        await visitor.page.until(
            "getComputedStyle(document.querySelector('#field-pool1-machines').parentElement)"
            ".display === 'none'"
        )
        await fills(visitor, name=name, masters_count="0", pool1_source="existing")
        await visitor.page.until(
            "getComputedStyle(document.querySelector('#field-pool1-type').parentElement)"
            ".display === 'none'"
        )
        await visitor.clicks(words["create cluster"], "#page")
        await visitor.page.shows(words["none"])
        for machine in ("machine-1", "machine-2"):
            await visitor.page.click(f"input[name=pool1-machines][value={machine}]")
        await visitor.page.shows(words["nodes"])
        await visitor.page.shows(words["balancers"])
        await visitor.clicks(words["create cluster"], "#page")
        await visitor.is_at("/clusters")
        await row_has(visitor, f"gpupool-{name}", words["running"])
        await row_has(visitor, f"gpupool-{name}", "2/2")
        await visitor.clicks(words["instances"], "#page")
        await row_has(visitor, "machine-1", words["used"])
        await row_has(visitor, "machine-2", name)
    assert place.owners() == {"machine-1": name, "machine-2": name}
    place.gpupool("reset", "--name", name, "--yes")
    assert place.owners() == {"machine-1": None, "machine-2": None}
