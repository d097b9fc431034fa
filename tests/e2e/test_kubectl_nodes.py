"""Nodes by kubectl, on a cluster of their own: taint, cordon, drain, top, and a node that dies."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.local.config.settings import NAMES
from gpupool.testing import Cluster
from tests.e2e.api import ready_nodes
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import budget, container, deployment, pod, shell, template, workload

pytestmark = pytest.mark.kubectl

POOL = {"name": "workers", "instanceType": "ecs.g6.xlarge", "count": 2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """In place of the shared one: these tests take nodes away."""
    with Cluster(pools=[POOL]) as running:
        eventually(lambda: len(ready_nodes(running)) == 2)
        yield running


@pytest.fixture
def kubectl(cluster: Cluster, kubectl_program: Path, tmp_path: Path) -> Iterator[Kubectl]:
    made = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)
    made("annotate", "namespace", "default", f"{NAMES.runtime_annotation}=timer", "--overwrite")
    yield made
    made("uncordon", *made.names("nodes"))
    made("delete", "deploy,rs,sts,ds,pods,pdb", "--all", "--now", "--wait=true")


def nodes_of(kubectl: Kubectl) -> set[str]:
    return set(kubectl.field(".items[*].spec.nodeName", "pods").split())


def test_cordon_keeps_new_pods_away(kubectl: Kubectl) -> None:
    first, second = kubectl.names("nodes")
    assert kubectl("cordon", first) == f"node/{first} cordoned\n"
    assert re.search(rf"{first}\s+Ready,SchedulingDisabled", kubectl("get", "nodes"))
    kubectl.apply(deployment("web", 3))
    kubectl("rollout", "status", "deployment/web")
    assert nodes_of(kubectl) == {second}
    eventually(lambda: "unschedulable" in kubectl.field(".spec.taints[*].key", "node", first))
    assert kubectl("uncordon", first) == f"node/{first} uncordoned\n"
    eventually(lambda: not kubectl.field(".spec.taints", "node", first))


def test_a_pod_that_waits_is_placed_once_a_node_opens(kubectl: Kubectl) -> None:
    both = kubectl.names("nodes")
    kubectl("cordon", *both)
    kubectl.apply(pod("web"))
    kubectl.wait("condition=PodScheduled=False", "pod/web")
    message = kubectl.field(".status.conditions[?(@.type=='PodScheduled')].message", "pod", "web")
    assert message.startswith("0/2 nodes are available: 2 node(s) were unschedulable")
    kubectl("uncordon", both[0])
    kubectl.wait("condition=Ready", "pod/web")


def test_a_taint_is_put_on_and_taken_off(kubectl: Kubectl) -> None:
    first, second = kubectl.names("nodes")
    assert kubectl("taint", "node", first, "team=ml:NoSchedule") == f"node/{first} tainted\n"
    kubectl.apply(deployment("web", 2))
    kubectl("rollout", "status", "deployment/web")
    assert nodes_of(kubectl) == {second}
    assert kubectl("taint", "node", first, "team-") == f"node/{first} untainted\n"


def test_a_taint_without_execution_drives_pods_away(kubectl: Kubectl) -> None:
    stays = {"key": "team", "operator": "Exists"}
    kubectl.apply(deployment("web", 2), pod("stays", tolerations=[stays], labels={"a": "b"}))
    kubectl("rollout", "status", "deployment/web")
    kubectl.wait("condition=Ready", "pod/stays")
    node = kubectl.field(".spec.nodeName", "pod", "stays")
    kubectl("taint", "node", node, "team=ml:NoExecute")

    def on_it() -> list[str]:
        return kubectl.names("pods", f"--field-selector=spec.nodeName={node}")

    eventually(lambda: on_it() == ["stays"])
    kubectl("taint", "node", node, "team-")


def test_drain_moves_pods_and_cordons(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 4))
    kubectl("rollout", "status", "deployment/web")
    node = sorted(nodes_of(kubectl))[0]
    said = kubectl("drain", node, "--timeout=20s")
    assert f"node/{node} cordoned" in said
    assert said.endswith(f"node/{node} drained\n")
    kubectl("rollout", "status", "deployment/web")
    assert node not in nodes_of(kubectl)


def test_drain_is_careful_with_what_does_not_come_back(kubectl: Kubectl) -> None:
    kubectl.apply(pod("alone"))
    kubectl.wait("condition=Ready", "pod/alone")
    node = kubectl.field(".spec.nodeName", "pod", "alone")
    said = kubectl.refused("drain", node)
    assert "cannot delete cannot delete Pods that declare no controller" in said
    kubectl("drain", node, "--force")
    assert kubectl.names("pods") == []


def test_drain_leaves_daemon_sets(kubectl: Kubectl) -> None:
    kubectl.apply(workload("DaemonSet", "everywhere", None))
    kubectl("rollout", "status", "ds/everywhere")
    node = kubectl.names("nodes")[0]
    said = kubectl.refused("drain", node)
    assert "cannot delete DaemonSet-managed Pods" in said
    kubectl("drain", node, "--ignore-daemonsets")
    assert len(kubectl.names("pods")) == 2


@pytest.mark.slow
def test_drain_waits_for_the_budget(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2), budget("web", minAvailable=2))
    kubectl("rollout", "status", "deployment/web")
    node = sorted(nodes_of(kubectl))[0]
    kubectl.wait("jsonpath={.status.currentHealthy}=2", "pdb/web")
    assert kubectl.field(".status.disruptionsAllowed", "pdb", "web") == "0"
    with kubectl.start("drain", node, "--timeout=30s") as draining:
        draining.shows("Cannot evict pod as it would violate the pod's disruption budget.")
        kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
        assert draining.ends(30) == 0
    kubectl("rollout", "status", "deployment/web")


def test_an_eviction_asked_for_by_hand(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2), budget("web", maxUnavailable=0))
    kubectl("rollout", "status", "deployment/web")
    kubectl.wait("jsonpath={.status.expectedPods}=2", "pdb/web")
    name = kubectl.names("pods")[0]
    path = f"/api/v1/namespaces/default/pods/{name}/eviction"
    body = f'{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{name}"}}}}'
    said = kubectl.refused("create", "--raw", path, "-f", "-", stdin=body)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in said


def test_top_shows_what_is_used(kubectl: Kubectl) -> None:
    busy = shell("while :; do :; done", resources={"limits": {"cpu": "1"}})
    notes = {NAMES.runtime_annotation: "process"}
    kubectl.apply(deployment("busy", 1, template=template(busy, annotations=notes)))
    kubectl("rollout", "status", "deployment/busy")
    row = re.compile(r"^busy-\S+\s+(\d+)m\s+[1-9]\d*Mi\s*$", re.MULTILINE)
    eventually(lambda: row.search(kubectl.run("top", "pods").out))
    nodes = kubectl("top", "nodes")
    assert "CPU(cores)" in nodes.splitlines()[0]
    assert len(nodes.splitlines()) == 3
    assert "main" in kubectl("top", "pods", "--containers", "-l", "app=web")


def test_a_node_that_is_deleted_takes_its_pods_along(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2))
    kubectl("rollout", "status", "deployment/web")
    node = sorted(nodes_of(kubectl))[0]
    kubectl("delete", "node", node)
    eventually(lambda: node not in nodes_of(kubectl) and len(kubectl.names("pods")) == 2)
    eventually(lambda: kubectl("get", "nodes").count(" Ready ") == 2)


@pytest.mark.slow
def test_a_node_that_falls_silent_is_not_ready(kubectl: Kubectl) -> None:
    soon = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    made = template(container(), tolerations=[soon | {"tolerationSeconds": 1}])
    kubectl.apply(deployment("web", 2, template=made))
    kubectl("rollout", "status", "deployment/web")
    node = sorted(nodes_of(kubectl))[0]
    kubectl("annotate", "node", node, f"{NAMES.kubelet_annotation}=stopped")
    kubectl.wait("condition=Ready=Unknown", f"node/{node}", within_s=60)
    assert re.search(rf"{node}\s+NotReady", kubectl("get", "nodes"))
    keys = eventually(lambda: kubectl.field(".spec.taints[*].key", "node", node))
    assert "node.kubernetes.io/unreachable" in keys

    def running_there() -> list[str]:
        items = kubectl.json("get", "pods")["items"]
        return [
            each["metadata"]["name"]
            for each in items
            if each["spec"].get("nodeName") == node and "deletionTimestamp" not in each["metadata"]
        ]

    eventually(lambda: not running_there(), 30)
    kubectl("annotate", "node", node, f"{NAMES.kubelet_annotation}-")
    kubectl.wait("condition=Ready", f"node/{node}", within_s=30)
    eventually(lambda: node not in kubectl("get", "pods", "-o", "wide"))
