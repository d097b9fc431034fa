"""Nodes of pools: names and addresses, and what the documents show of them."""

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.local.config.catalogue import catalogue
from gpupool.local.config.cluster_file import (
    ClusterFile,
    default_cluster_text,
    parse_cluster,
)
from gpupool.local.config.nodes import (
    NetworkFull,
    Taken,
    cluster_nodes,
    new_nodes,
    taken_by,
)
from gpupool.local.config.spec import (
    Network,
    NodeNaming,
    PoolSpec,
    Role,
    Taint,
)
from kubeclient.objects import Obj

NETWORK = Network(IPv4Network("192.168.0.0/24"), IPv4Network("10.0.0.0/16"))


def pool(name: str = "a", **changes: object) -> PoolSpec:
    known = catalogue()
    fields: dict[str, object] = {
        "name": name,
        "count": 1,
        "instance_type": known.instance_types["ecs.gn4-c4g1.xlarge"],
        "region": "cn-beijing",
        "zone": "cn-beijing-a",
        "os": known.operating_systems["CentOS 7.x"],
    }
    return PoolSpec(**(fields | changes))  # type: ignore[arg-type]  # the fields vary


def one(wanted: PoolSpec) -> Obj:
    (node,) = new_nodes(wanted, 1, network=NETWORK, taken=Taken())
    return node


def names(nodes: list[Obj]) -> list[str]:
    return [node["metadata"]["name"] for node in nodes]


def default_nodes() -> list[Obj]:
    file = parse_cluster(default_cluster_text())
    assert isinstance(file, ClusterFile)
    return cluster_nodes(file.spec.pools, network=file.spec.network)


def test_the_nodes_of_the_default_cluster_are_those_of_the_documents() -> None:
    role = "node-role.kubernetes.io/master"
    rows = sorted(
        (node["metadata"]["name"], "master" if role in node["metadata"]["labels"] else "<none>")
        for node in default_nodes()
    )
    assert rows == [
        ("cn-beijing.i-2ze2dy2h9w97v65uuaft", "master"),
        ("cn-beijing.i-2ze8o1a45qdv5q8a7luz", "<none>"),
        ("cn-beijing.i-2ze8o1a45qdv5q8a7lv0", "<none>"),
        ("cn-beijing.i-2ze9xylyn11vop7g5bwe", "master"),
        ("cn-beijing.i-2zed5sw8snjniq6mf5e5", "master"),
        ("cn-beijing.i-2zej9s0zijykp9pwf7lu", "<none>"),
        ("cn-shanghai.192.168.7.157", "<none>"),
        ("cn-shanghai.192.168.7.158", "<none>"),
    ]


def test_a_gpu_node_has_the_labels_of_the_documents() -> None:
    node = next(
        node
        for node in default_nodes()
        if node["metadata"]["name"] == "cn-beijing.i-2ze8o1a45qdv5q8a7luz"
    )
    labels = node["metadata"]["labels"]
    documented = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": "ecs.gn4-c4g1.xlarge",
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": "cn-beijing",
        "failure-domain.beta.kubernetes.io/zone": "cn-beijing-a",
        "kubernetes.io/hostname": "cn-beijing.i-2ze8o1a45qdv5q8a7luz",
    }
    assert documented.items() <= labels.items()
    # kubectl sorts labels: ours must not come before the ones that the document shows first.
    assert sorted(labels)[:5] == sorted(documented)[:5]
    assert labels["node.kubernetes.io/instance-type"] == "ecs.gn4-c4g1.xlarge"
    assert labels["topology.kubernetes.io/zone"] == "cn-beijing-a"
    assert labels["kubernetes.io/arch"] == "amd64"
    assert labels["kubernetes.io/os"] == "linux"
    assert labels["node.gpupool.io/pool"] == "gpu"


def test_a_name_with_an_address_has_that_address() -> None:
    node = next(
        node for node in default_nodes() if node["metadata"]["name"] == "cn-shanghai.192.168.7.157"
    )
    assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": "192.168.7.157"}


def test_a_node_is_what_a_kubelet_posts() -> None:
    node = one(pool(taints=(Taint("k", "NoExecute", "v"),), tags={"a": "b"}, resource_group="rg"))
    assert node["spec"]["podCIDR"] == "10.0.0.0/24"
    assert node["spec"]["taints"] == [{"key": "k", "value": "v", "effect": "NoExecute"}]
    assert node["metadata"]["annotations"] == {
        "node.gpupool.io/resource-group": "rg",
        "node.gpupool.io/tags": '{"a": "b"}',
    }
    status = node["status"]
    assert status["capacity"]["cpu"] == "4"
    assert status["capacity"]["memory"] == f"{30 * 1024 * 1024}Ki"
    assert status["allocatable"]["memory"] == f"{30 * 1024 * 1024 - 102400}Ki"
    assert status["allocatable"]["pods"] == "110"
    assert status["nodeInfo"]["osImage"] == "CentOS Linux 7 (Core)"
    assert status["nodeInfo"]["kubeletVersion"] == "v1.35.8"
    assert all(isinstance(value, str) for value in status["nodeInfo"].values())


def test_control_plane_nodes_keep_other_pods_away() -> None:
    assert one(pool(role=Role.CONTROL_PLANE))["spec"]["taints"] == [
        {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
    ]


def test_generated_names_look_like_given_ones() -> None:
    assert len(one(pool())["metadata"]["name"]) == len("cn-beijing.i-2ze8o1a45qdv5q8a7luz")
    assert one(pool())["metadata"]["name"].startswith("cn-beijing.i-2ze")
    assert one(pool(naming=NodeNaming.ADDRESS))["metadata"]["name"] == "cn-beijing.192.168.0.1"


def test_given_names_come_first_and_free_ones_again() -> None:
    spec = pool(node_names=("x", "y"))
    first = new_nodes(spec, 3, network=NETWORK, taken=Taken())
    assert names(first)[:2] == ["x", "y"]
    left = taken_by([first[0], first[2]])  # y was removed
    (again,) = new_nodes(spec, 1, network=NETWORK, taken=left)
    assert again["metadata"]["name"] == "y"
    assert again["spec"]["podCIDR"] == first[1]["spec"]["podCIDR"]


def test_a_given_address_is_not_given_to_another() -> None:
    nodes = cluster_nodes(
        [pool("a", count=3), pool("b", node_names=("r.192.168.0.2",))],
        network=NETWORK,
    )
    addresses = [node["status"]["addresses"][0]["address"] for node in nodes]
    assert addresses == ["192.168.0.1", "192.168.0.3", "192.168.0.4", "192.168.0.2"]


def test_a_full_network_is_refused() -> None:
    small = Network(IPv4Network("192.168.0.0/29"), NETWORK.pods)
    with pytest.raises(NetworkFull, match=r"no address is left for a node in 192\.168\.0\.0/29"):
        new_nodes(pool(), 7, network=small, taken=Taken())


@given(
    first=st.integers(0, 3),
    second=st.integers(0, 3),
    more=st.integers(0, 3),
    naming=st.sampled_from(NodeNaming),
)
def test_no_two_nodes_share_a_name_or_an_address(
    first: int, second: int, more: int, naming: NodeNaming
) -> None:
    pools = [pool("a", count=first, node_names=("x", "r.192.168.0.2")), pool("b", count=second)]
    nodes = cluster_nodes(pools, network=NETWORK)
    grown = pool("a", naming=naming, node_names=("x", "r.192.168.0.2"))
    nodes += new_nodes(grown, more, network=NETWORK, taken=taken_by(nodes))
    assert len(nodes) == first + second + more
    assert len(set(names(nodes))) == len(nodes)
    assert len({node["spec"]["podCIDR"] for node in nodes}) == len(nodes)
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == len(nodes)
