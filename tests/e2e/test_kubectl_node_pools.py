"""Node pools by kubectl, on a cluster of their own."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.contract import names
from gpupool.local.config.settings import NAMES
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.api import ready_nodes
from tests.e2e.kubectl import Kubectl, eventually, stream_of
from tests.e2e.objects import budget, container, deployment, template

pytestmark = pytest.mark.kubectl

CONFIG = {
    "pools": [{"name": "base", "instanceType": "ecs.g6.xlarge", "count": 1}],
    "quotas": {"nodesPerCluster": 6},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config=CONFIG) as running:
        eventually(lambda: len(ready_nodes(running)) == 1)
        yield running


@pytest.fixture
def kubectl(cluster: Cluster, kubectl_program: Path, tmp_path: Path) -> Iterator[Kubectl]:
    made = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)
    made("annotate", "namespace", "default", f"{NAMES.runtime_annotation}=timer", "--overwrite")
    yield made
    made("delete", "deploy,pods,pdb", "--all", "--now")
    others = [name for name in made.names("nodepools") if name != "base"]
    if others:
        made("delete", "nodepool", *others)


def pool(name: str, count: int, **spec: object) -> Obj:
    return {
        "apiVersion": "gpupool.io/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"instanceType": "ecs.g6.xlarge", "count": count, **spec},
    }


def nodes(kubectl: Kubectl, name: str) -> list[str]:
    return kubectl.names("nodes", "-l", f"{names.LABEL_POOL}={name}")


def pinned(name: str) -> Obj:
    """A template for pods that belong on one pool."""
    return template(nodeSelector={names.LABEL_POOL: name})


def test_a_new_pool_becomes_active(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 2, labels={"team": "ml"}))
    kubectl.wait("jsonpath={.status.phase}=Active", "nodepool/a")
    assert len(nodes(kubectl, "a")) == 2
    assert kubectl.names("nodes", "-l", "team=ml") == nodes(kubectl, "a")
    row = kubectl("get", "nodepool", "a").splitlines()[1].split()
    assert row[0] == "a"
    assert "Active" in row


def test_a_pool_is_scaled_up_and_down(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 0))
    kubectl.wait("jsonpath={.status.phase}=Active", "nodepool/a")
    assert kubectl("scale", "nodepool", "a", "--replicas=3") == "nodepool.gpupool.io/a scaled\n"
    kubectl.wait("jsonpath={.status.readyNodes}=3", "nodepool/a")
    kubectl("scale", "nodepool", "a", "--replicas=1")
    eventually(lambda: len(nodes(kubectl, "a")) == 1)
    kubectl.wait("jsonpath={.status.nodes}=1", "nodepool/a")


def test_pods_are_moved_before_their_node_goes(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 2))
    kubectl.wait("jsonpath={.status.readyNodes}=2", "nodepool/a")
    kubectl.apply(deployment("web", 4, template=pinned("a")), budget("web", maxUnavailable=1))
    kubectl("rollout", "status", "deployment/web")
    kubectl.wait("jsonpath={.status.disruptionsAllowed}=1", "pdb/web")
    kubectl("scale", "nodepool", "a", "--replicas=1")
    eventually(lambda: len(nodes(kubectl, "a")) == 1, 30)
    kubectl("rollout", "status", "deployment/web")
    (left,) = nodes(kubectl, "a")
    assert set(kubectl.field(".items[*].spec.nodeName", "pods").split()) == {left}
    eventually(lambda: "ScaledDown" in kubectl("events", "--for", "nodepool/a"))


def test_a_budget_holds_a_node(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 1))
    kubectl.wait("jsonpath={.status.readyNodes}=1", "nodepool/a")
    kubectl.apply(deployment("web", 1, template=pinned("a")), budget("web", minAvailable=1))
    kubectl("rollout", "status", "deployment/web")
    kubectl.wait("jsonpath={.status.expectedPods}=1", "pdb/web")
    (node,) = nodes(kubectl, "a")
    kubectl("scale", "nodepool", "a", "--replicas=0")
    eventually(lambda: kubectl.field(".spec.unschedulable", "node", node) == "true")
    assert nodes(kubectl, "a") == [node]
    kubectl("delete", "pdb", "web")
    eventually(lambda: nodes(kubectl, "a") == [])


def test_a_pool_beyond_the_quota_is_refused(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 1))
    kubectl.wait("jsonpath={.status.readyNodes}=1", "nodepool/a")
    said = kubectl.refused("scale", "nodepool", "a", "--replicas=99")
    assert re.search(r"quota nodes-per-cluster is 6: \d used, \d+ wanted", said)
    assert "gpupool quota set nodes-per-cluster=" in said
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(pool("b", 6)))
    assert 'nodepools.gpupool.io "b" is forbidden: quota nodes-per-cluster is 6' in said
    kubectl("scale", "nodepool", "a", "--replicas=2")
    kubectl.wait("jsonpath={.status.readyNodes}=2", "nodepool/a")


def test_a_label_of_ours_is_told_in_the_status(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 1, labels={"kubernetes.io/hostname": "mine"}))
    condition = "{.status.conditions[?(@.type=='Ready')].reason}"
    kubectl.wait(f"jsonpath={condition}=InvalidSpec", "nodepool/a")
    assert "Failed" in kubectl("get", "nodepool", "a")


def test_a_bad_pool_is_refused_at_once(kubectl: Kubectl) -> None:
    unknown = stream_of(pool("a", 1, instanceType="ecs.nonsense"))
    said = kubectl.refused("apply", "-f", "-", stdin=unknown)
    assert 'spec.instanceType: Unsupported value: "ecs.nonsense"' in said
    for limits, words in (
        ({"min": 2, "max": 3}, "wanted a count within autoscaling"),
        ({"min": 3, "max": 1}, "wanted at least autoscaling.min"),
    ):
        made = stream_of(pool("a", 1, autoscaling=limits))
        assert words in kubectl.refused("apply", "-f", "-", stdin=made)
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(pool("a", -1)))
    assert "spec.count" in said
    said = kubectl.refused("apply", "-f", "-", stdin=stream_of(pool("a", 1, colour="red")))
    assert 'unknown field "spec.colour"' in said


def test_a_deleted_pool_takes_its_nodes_along(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 2))
    kubectl.wait("jsonpath={.status.readyNodes}=2", "nodepool/a")
    kubectl("delete", "nodepool", "a")
    assert nodes(kubectl, "a") == []


def test_a_pool_grows_when_pods_wait_for_it(kubectl: Kubectl) -> None:
    kubectl.apply(pool("a", 0, autoscaling={"min": 0, "max": 2}))
    kubectl.wait("jsonpath={.status.phase}=Active", "nodepool/a")
    big = container(resources={"requests": {"cpu": "3"}})
    made = template(big, nodeSelector={names.LABEL_POOL: "a"})
    kubectl.apply(deployment("web", 3, template=made))
    eventually(lambda: len(nodes(kubectl, "a")) == 2, 30)
    kubectl.wait("jsonpath={.status.readyReplicas}=2", "deployment/web")
    eventually(lambda: "Autoscaled" in kubectl("events", "--for", "nodepool/a"))
    assert len(kubectl.names("pods", "--field-selector=status.phase=Pending")) == 1


def test_nodes_carry_what_the_pool_says(kubectl: Kubectl) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    spec = {"taints": [taint], "os": "Alibaba Cloud Linux 2.x", "tags": {"owner": "me"}}
    kubectl.apply(pool("a", 1, **spec))
    kubectl.wait("jsonpath={.status.readyNodes}=1", "nodepool/a")
    found = kubectl.json("get", "nodes", "-l", f"{names.LABEL_POOL}=a")["items"][0]
    assert found["spec"]["taints"] == [taint]
    assert found["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "ecs.g6.xlarge"
    assert "Alibaba Cloud Linux" in found["status"]["nodeInfo"]["osImage"]
