"""`gpupool report` and `gpupool idle` on a cluster: what they say, and the commands they advise.

A cluster is three hours old within seconds: its history is written while it is stopped, and the
pods' conditions say that they got their cards then.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.accounts import entries
from gpupool.history.database import FILE
from gpupool.history.facts import Held, Moment, NodeFacts, node_facts, pod_facts
from gpupool.history.store import Store
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.gpu_cluster import SHARED_POOLS

pytestmark = pytest.mark.kubectl

HOURS = 3
PODS = {"lazy-0": (0, 900), "busy-0": (40, 2000), "alone": (60, 700)}  # percent, MiB
MANIFEST = """
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: lazy}
  spec:
    serviceName: lazy
    replicas: 1
    selector: {matchLabels: {app: lazy}}
    template:
      metadata: {labels: {app: lazy, gpupool.io/user: bob}}
      spec: &spec
        nodeSelector: {cgpu.disable.isolation: "false"}
        containers:
        - {name: main, image: pause, resources: {limits: {aliyun.com/gpu-mem: 5}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: busy}
  spec:
    serviceName: busy
    replicas: 1
    selector: {matchLabels: {app: busy}}
    template:
      metadata: {labels: {app: busy, gpupool.io/user: ann}}
      spec: *spec
- apiVersion: v1
  kind: Pod
  metadata: {name: alone, labels: {gpupool.io/user: ann}}
  spec: *spec
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"pools": list(SHARED_POOLS)}) as made:
        made.kubectl("apply", "-f", "-", stdin=MANIFEST)
        for name in PODS:
            made.kubectl("wait", f"pod/{name}", "--for=create", "--timeout=120s")
            made.kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=120s")
        began_s = time.time() - HOURS * 3600
        held = [replace(each, from_ms=int(began_s * 1000)) for each in _held(made)]
        nodes = {
            node["metadata"]["name"]: facts
            for node in _items(made, "nodes")
            if (facts := node_facts(node)) is not None
        }
        made.stop()
        _write_history(made, nodes, held, began_s)
        made.start()
        _make_old(made, began_s)
        yield made


def _items(cluster: Cluster, kind: str) -> list[Obj]:
    found: list[Obj] = json.loads(cluster.kubectl("get", kind, "-o", "json"))["items"]
    return found


def _held(cluster: Cluster) -> list[Held]:
    return [each for pod in _items(cluster, "pods") for each in pod_facts(pod)]


def _write_history(
    cluster: Cluster, nodes: dict[str, NodeFacts], held: list[Held], began_s: float
) -> None:
    def moment(minute: int) -> Moment:
        at_s = began_s + 60 * minute
        uses: dict[str, list[ContainerUse]] = {}
        for each in held:
            percent, mib = PODS[each.pod]
            idle_s = 0.0 if percent else at_s - began_s
            use = ContainerUse(
                each.namespace,
                each.pod,
                "main",
                mib,
                uid=each.uid,
                sm_percent=percent,
                idle_s=idle_s,
                watched_since_s=began_s,
            )
            uses.setdefault(each.shares[0].uuid, []).append(use)
        cards = {
            uuid: CardReading(uuid, 900, sm_percent=0, containers=tuple(uses.get(uuid, ())))
            for node in nodes.values()
            for uuid in node.cards
        }
        found = {(each.uid, each.container): each for each in held}
        return Moment(int(at_s * 1000), nodes, found, cards, dict.fromkeys(nodes, at_s))

    with Store(cluster.directory / FILE) as store:
        for minute in range(HOURS * 60):
            before, after = moment(minute), moment(minute + 1)
            store.add(before.at_ms, after.at_ms, entries(before, after))


def _make_old(cluster: Cluster, began_s: float) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began_s))
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}
    change = json.dumps({"status": {"conditions": [condition]}})
    for name in PODS:
        cluster.kubectl(
            "patch", "pod", name, "--subresource=status", "--type=strategic", "-p", change
        )


def run(cluster: Cluster, *words: str) -> str:
    home = cluster.directory.parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "gpupool", *words],
        capture_output=True,
        text=True,
        env=os.environ | {"GPUPOOL_HOME": str(home), "KUBECONFIG": str(cluster.kubeconfig)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def report(cluster: Cluster, by: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        run(cluster, "report", f"--by={by}", "--since=3h", "--idle-for=2h", "-o", "json")
    )
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("by", ["namespace", "user", "pool", "workload"])
def test_each_report_has_the_same_total_which_adds_up(cluster: Cluster, by: str) -> None:
    total = report(cluster, by)["total"]
    assert total["givenGpuHours"] == pytest.approx(HOURS, rel=0.02)  # three pods, a third each
    # 40 % and 60 % of a card are more than the third of each: they have used all of theirs.
    assert total["usedGpuHours"] == pytest.approx(HOURS * 2 / 3, rel=0.02)
    parts = [total[f"{name}GpuHours"] for name in ("used", "idle", "unknown")]
    assert sum(parts) == pytest.approx(total["givenGpuHours"], abs=1e-6)


@pytest.mark.timeout(300)
def test_the_lines_say_who_it_was(cluster: Cluster) -> None:
    users = {each["name"]: each for each in report(cluster, "user")["items"]}
    assert users["bob"]["usedPercent"] == 0
    assert users["ann"]["usedPercent"] == pytest.approx(100, abs=1)
    assert users["ann"]["beyondGpuHours"] == pytest.approx(HOURS * (1 - 2 / 3), rel=0.05)
    assert "default" in run(cluster, "report", "--since=3h", "-o", "csv")
    page = run(cluster, "report", "--since=3h", "-o", "html")
    assert page.startswith("<!doctype html>")
    assert "<script" not in page


@pytest.mark.timeout(300)
def test_what_is_advised_can_be_done(cluster: Cluster) -> None:
    """With the lines as they are printed, in a shell."""
    advice = {each["workload"]: each for each in report(cluster, "workload")["advice"]}
    assert {name: each["units"] for name, each in advice.items()} == {
        "StatefulSet/busy": 3,
        "StatefulSet/lazy": 2,
        "Pod/alone": 1,
    }
    first, *words = shlex.split(advice["StatefulSet/busy"]["command"])
    assert first == "kubectl"
    assert "updated" in cluster.kubectl(*words)
    first, *words = shlex.split(advice["Pod/alone"]["command"])
    assert first == "gpupool"
    assert "-> 1 units" in run(cluster, *words).replace("1 unit ", "1 units ")
    # Who has followed it is not told again.
    cluster.kubectl("rollout", "status", "statefulset/busy", "--timeout=120s")
    left = {each["workload"] for each in report(cluster, "workload")["advice"]}
    assert left == {"StatefulSet/lazy"}


@pytest.mark.timeout(300)
def test_an_idle_workload_goes_to_zero_and_comes_back(cluster: Cluster) -> None:
    found = json.loads(run(cluster, "idle", "--for=2h", "-o", "json"))["items"]
    assert [(each["pod"], each["user"], each["lastActive"]) for each in found] == [
        ("lazy-0", "bob", None)
    ]
    said = run(cluster, "idle", "--for=2h", "--scale-to-zero=StatefulSet/lazy", "-n", "default")
    assert said.startswith("default/StatefulSet/lazy scaled from 1 to 0.")
    cluster.kubectl("wait", "pod/lazy-0", "--for=delete", "--timeout=120s")
    words = shlex.split(said.partition("Back: gpupool ")[2])
    assert "has 1 replicas again" in run(cluster, *words)
    cluster.kubectl("wait", "pod/lazy-0", "--for=create", "--timeout=120s")
    assert json.loads(run(cluster, "idle", "--for=2h", "-o", "json"))["items"] == []
