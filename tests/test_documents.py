"""What the documents show, as the default cluster shows it, by the real kubectl."""

from collections.abc import Iterator

import pytest

from gpupool.testing import Cluster
from testbed.find_kubectl import find_kubectl

# `kubectl get nodes` of the document; its ages and versions are of 2018.
NODES = """\
cn-beijing.i-2ze2dy2h9w97v65uuaft   Ready     master
cn-beijing.i-2ze8o1a45qdv5q8a7luz   Ready     <none>
cn-beijing.i-2ze8o1a45qdv5q8a7lv0   Ready     <none>
cn-beijing.i-2ze9xylyn11vop7g5bwe   Ready     master
cn-beijing.i-2zed5sw8snjniq6mf5e5   Ready     master
cn-beijing.i-2zej9s0zijykp9pwf7lu   Ready     <none>
"""

# `kubectl describe node`; the labels of the cards, which come first, need the node's agent.
LABELS = """\
beta.kubernetes.io/arch=amd64
beta.kubernetes.io/instance-type=ecs.gn4-c4g1.xlarge
beta.kubernetes.io/os=linux
failure-domain.beta.kubernetes.io/region=cn-beijing
failure-domain.beta.kubernetes.io/zone=cn-beijing-a
kubernetes.io/hostname=cn-beijing.i-2ze8o1a45qdv5q8a7luz
"""

pytestmark = pytest.mark.kubectl


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("NO KUBECTL FOUND, so the documents were not tried: set KUBECTL=path")
    with Cluster() as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(kubectl.parent), prepend=":")
        running.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=30s")
        yield running


def test_the_nodes_are_those_of_the_document(cluster: Cluster) -> None:
    rows = [line.split()[:3] for line in cluster.kubectl("get", "nodes").splitlines()]
    assert rows[0] == ["NAME", "STATUS", "ROLES"]
    assert rows[1:7] == [line.split() for line in NODES.splitlines()]


def test_a_node_is_described_as_in_the_document(cluster: Cluster) -> None:
    text = cluster.kubectl("describe", "node", "cn-beijing.i-2ze8o1a45qdv5q8a7luz")
    assert text.startswith(
        "Name:               cn-beijing.i-2ze8o1a45qdv5q8a7luz\n"
        "Roles:              <none>\n"
        "Labels:             "
    )
    labels = [line.removeprefix("Labels:").strip() for line in text.splitlines()[2:]]
    shown = [label for label in labels if label in LABELS.splitlines()]
    assert shown == LABELS.splitlines()


def test_the_pools_are_those_of_the_document(cluster: Cluster) -> None:
    for isolation, node in (("false", "157"), ("true", "158")):
        selector = f"cgpu=true,cgpu.disable.isolation={isolation}"
        names = cluster.kubectl("get", "nodes", "-l", selector, "-o", "name")
        assert names == f"node/cn-shanghai.192.168.7.{node}\n"
    pools = cluster.kubectl("get", "nodepools").splitlines()
    assert ["cgpu", "Active"] in [line.split()[:2] for line in pools]
    assert ["cgpu-no-isolation", "Active"] in [line.split()[:2] for line in pools]


def test_addresses_are_those_of_the_document(cluster: Cluster) -> None:
    address = "jsonpath={.status.addresses[?(@.type=='InternalIP')].address}"
    assert cluster.kubectl("get", "node", "cn-shanghai.192.168.7.157", "-o", address) == (
        "192.168.7.157"
    )
