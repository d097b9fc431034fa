"""Cluster files: what is read, and how each mistake is reported."""

from textwrap import dedent

import pytest

from gpupool.local.config.cluster_file import (
    ClusterFile,
    default_cluster_text,
    parse_cluster,
    report,
)
from gpupool.local.config.spec import Autoscaling, ImageSpec, NodeNaming, Quotas, Role, Taint

HEAD = "apiVersion: gpupool.io/v1alpha1\nkind: Cluster\n"


def read(text: str) -> ClusterFile:
    file = parse_cluster(HEAD + dedent(text))
    assert isinstance(file, ClusterFile), file
    return file


def problems(text: str) -> list[str]:
    """Each as "line:column: rest", lines counted from the end of the two head lines."""
    found = parse_cluster(HEAD + dedent(text))
    assert not isinstance(found, ClusterFile)
    return [line.removeprefix("f:") for line in report(found, "f").splitlines()]


def test_images_say_what_runs_for_them() -> None:
    found = read("""
        pools: []
        images:
          - {name: "localhost:5000/trainer:v2", command: [train], args: [-v], directory: /srv/a}
          - {name: other, command: [sh]}
        """)
    assert found.spec.images == {
        "localhost:5000/trainer:v2": ImageSpec(("train",), ("-v",), "/srv/a"),
        "other": ImageSpec(("sh",)),
    }


def test_the_default_cluster_is_the_one_of_the_documents() -> None:
    file = parse_cluster(default_cluster_text())
    assert isinstance(file, ClusterFile)
    pools = {pool.name: pool for pool in file.spec.pools}
    assert {name: pool.count for name, pool in pools.items()} == {
        "control-plane": 3,
        "workers": 1,
        "gpu": 2,
        "cgpu": 1,
        "cgpu-no-isolation": 1,
    }
    assert pools["control-plane"].role is Role.CONTROL_PLANE
    m40 = pools["gpu"].instance_type
    assert (m40.name, m40.gpu_count) == ("ecs.gn4-c4g1.xlarge", 1)
    assert m40.gpu is not None
    assert (m40.gpu.name, m40.gpu.memory_mib) == ("Tesla M40", 12209)
    v100 = pools["cgpu"].instance_type.gpu
    assert v100 is not None
    assert v100.memory_mib == 16130
    assert pools["cgpu"].labels == {"cgpu": "true", "cgpu.disable.isolation": "false"}
    assert pools["cgpu-no-isolation"].labels == {"cgpu": "true", "cgpu.disable.isolation": "true"}


def test_every_field_of_a_pool_is_read() -> None:
    pool = read("""
        pools:
          - name: a
            count: 2
            instanceType: ecs.g6.large
            role: worker
            region: cn-shanghai
            zone: cn-shanghai-b
            os: Alibaba Cloud Linux 2.x
            labels: {team: blue}
            taints: [{key: dedicated, value: blue, effect: NoSchedule}]
            tags: {cost centre: "42"}
            resourceGroup: rg-1
            managed: true
            autoscaling: {min: 1, max: 5}
            naming: address
            nodeNames: [cn-shanghai.192.168.9.9]
        """).spec.pools[0]
    assert (pool.count, pool.region, pool.zone) == (2, "cn-shanghai", "cn-shanghai-b")
    assert pool.os.image.startswith("Alibaba Cloud Linux (Aliyun Linux) 2.1903 LTS")
    assert pool.taints == (Taint("dedicated", "NoSchedule", "blue"),)
    assert pool.tags == {"cost centre": "42"}
    assert (pool.resource_group, pool.managed) == ("rg-1", True)
    assert pool.autoscaling == Autoscaling(1, 5)
    assert pool.naming is NodeNaming.ADDRESS
    assert pool.node_names == ("cn-shanghai.192.168.9.9",)


def test_a_pool_takes_region_and_zone_from_the_cluster() -> None:
    spec = read("""
        region: cn-hangzhou
        zone: cn-hangzhou-h
        pools:
          - {name: here, instanceType: ecs.g6.large}
          - {name: there, instanceType: ecs.g6.large, region: cn-shanghai}
        """).spec
    assert [(p.region, p.zone) for p in spec.pools] == [
        ("cn-hangzhou", "cn-hangzhou-h"),
        ("cn-shanghai", "cn-shanghai-a"),
    ]


def test_no_pools_and_empty_pools_are_fine() -> None:
    assert read("pools: []").spec.pools == ()
    assert read("pools: [{name: a, instanceType: ecs.g6.large, count: 0}]").spec.pools[0].count == 0


def test_a_file_can_add_machines_and_cards() -> None:
    spec = read("""
        gpuModels: [{name: NVIDIA L40S, memoryMiB: 46068}]
        instanceTypes:
          - {name: my.box, vcpus: 64, memoryGiB: 512.5, gpus: {model: NVIDIA L40S, count: 8}}
          - {name: my.old, vcpus: 1, memoryGiB: 1, gpus: {model: Tesla M40, count: 1}}
        pools: [{name: a, instanceType: my.box}]
        """).spec
    machine = spec.pools[0].instance_type
    assert (machine.vcpus, machine.memory_mib, machine.gpu_count) == (64, 524800, 8)
    assert machine.gpu is not None
    assert machine.gpu.memory_mib == 46068
    assert {"my.box", "my.old", "ecs.g6.large"} <= set(spec.instance_types)


def test_a_machine_can_have_another_simulated_driver() -> None:
    spec = read("""
        instanceTypes:
          - name: walled
            vcpus: 8
            memoryGiB: 32
            gpus: {model: Tesla M40, count: 1, driver: 615.71.09}
        pools: [{name: a, instanceType: walled}, {name: b, instanceType: ecs.gn4-c4g1.xlarge}]
        """).spec
    assert [pool.instance_type.gpu_driver for pool in spec.pools] == ["615.71.09", ""]


def test_a_file_can_change_the_quotas_of_its_cluster() -> None:
    spec = read("quotas: {nodesPerCluster: 100}\npools: []\n").spec
    assert spec.quotas == Quotas(nodes_per_cluster=100)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, cuont: 1}\n",
            ['4:43: pools[0].cuont: unknown field; did you mean "count"?'],
            id="misspelt field",
        ),
        pytest.param(
            "pools:\n  - name: a\n",
            ['4:5: pools[0]: the field "instanceType" is missing'],
            id="missing field",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, count: two}\n",
            ['4:50: pools[0].count: wanted a whole number, found "two"'],
            id="wrong type",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, count: -1}\n",
            ["4:50: pools[0].count: wanted at least 0, found -1"],
            id="too small",
        ),
        pytest.param(
            "pools:\n  - name: a\n    instanceType: ecs.g6.large\n    labels: {cgpu: true}\n",
            ['6:20: pools[0].labels.cgpu: wanted text, found true; put it in quotes: "true"'],
            id="unquoted label",
        ),
        pytest.param(
            "pools:\n  - name: a\n    instanceType: ecs.g6.large\n    os:\n",
            [
                '6:8: pools[0].os: wanted "Alibaba Cloud Linux 2.x" or "CentOS 7.x", found nothing',
            ],
            id="no value",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.lage}\n",
            [
                '4:29: pools[0].instanceType: no instance type "ecs.g6.lage" is known; '
                'did you mean "ecs.g6.large"?'
            ],
            id="unknown machine",
        ),
        pytest.param(
            "instanceTypes:\n  - {name: b, vcpus: 1, memoryGiB: 1, gpus: {model: M4, count: 1}}\n"
            "pools:\n  - {name: a, instanceType: b}\n",
            [
                '4:53: instanceTypes[0].gpus.model: no card "M4" is known; '
                "describe it under gpuModels"
            ],
            id="unknown card",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large}\n"
            "  - {name: a, instanceType: ecs.g6.large}\n",
            ['5:12: pools[1].name: the name "a" is given twice'],
            id="name twice",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, nodeNames: [n]}\n"
            "  - {name: b, instanceType: ecs.g6.large, nodeNames: [n]}\n",
            [
                '5:55: pools[1].nodeNames[0]: the name "n" is already given to a node of pool "a"',
            ],
            id="node name twice",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, autoscaling: {min: 2, max: 1}}\n",
            ["4:70: pools[0].autoscaling.max: wanted at least the minimum, 2; found 1"],
            id="minimum over maximum",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, autoscaling: {min: 2, max: 3}}\n",
            ["4:5: pools[0].count: wanted a count within autoscaling, 2 to 3; found 1"],
            id="count outside of autoscaling",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, labels: {kubernetes.io/os: x}}\n",
            ['4:70: pools[0].labels["kubernetes.io/os"]: this label is set by gpupool itself'],
            id="our label",
        ),
        pytest.param(
            "pools:\n  - {name: a, instanceType: ecs.g6.large, taints: [{key: k, effect: Nix}]}\n",
            [
                '4:69: pools[0].taints[0].effect: wanted "NoExecute" or "NoSchedule" or '
                '"PreferNoSchedule", found "Nix"'
            ],
            id="taint effect",
        ),
        pytest.param(
            "network: {pods: 192.168.3.0/24}\npools: []\n",
            ["3:17: network.pods: 192.168.3.0/24 overlaps with 192.168.0.0/16 of nodes"],
            id="overlap",
        ),
        pytest.param(
            "network: {pods: 10.96.0.0/16}\npools: []\n",
            ["3:17: network.pods: 10.96.0.0/16 overlaps with 10.96.0.0/12 of services"],
            id="overlap with services",
        ),
        pytest.param(
            "network: {nodes: 10.0.0.1/8}\npools: []\n",
            [
                "3:18: network.nodes: wanted an IPv4 network such as 192.168.0.0/16, "
                'found "10.0.0.1/8": 10.0.0.1/8 has host bits set'
            ],
            id="not a network",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_position(text: str, wanted: list[str]) -> None:
    found = parse_cluster(HEAD + text)
    assert not isinstance(found, ClusterFile)
    assert report(found, "f").splitlines() == [f"f:{line}" for line in wanted]


def test_all_mistakes_come_at_once_in_the_order_of_the_file() -> None:
    lines = problems("""
        nmae: x
        pools:
          - name: Bad_Name
            instanceType: ecs.g6.large
            count: 1.5
            os: Windows
        """)
    assert [line.split(":")[0] for line in lines] == ["4", "6", "8", "9"]


def test_a_bad_label_key_points_at_the_key() -> None:
    (line,) = problems("""
        pools:
          - name: a
            instanceType: ecs.g6.large
            labels:
              "a b": x
        """)
    assert line.startswith('8:7: pools[0].labels["a b"]: wanted a label key')


def test_the_name_of_a_cluster_is_short() -> None:
    assert read(f"name: {'a' * 40}\npools: []\n").name == "a" * 40
    (problem,) = problems(f"name: {'a' * 41}\npools: []\n")
    assert problem.startswith("3:7: name: wanted lower-case letters, digits")
    assert "at most 40" in problem


def test_pools_are_checked_beside_one_that_is_misspelt() -> None:
    lines = problems("""
        kidn: x
        network: {pods: 1.2.3.0/33}
        pools:
          - name: a
            instanceType: ecs.g6.large
            cuont: 1
          - name: b
            instanceType: ecs.nothing
          - name: b
            instanceType: ecs.g6.large
        """)
    assert [line.split(": ")[1] for line in lines] == [
        "kidn",
        "network.pods",
        "pools[0].cuont",
        "pools[1].instanceType",
        "pools[2].name",
    ]


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ("count: 1, machines: [a, b]", "pools[0].count: wanted 2, one node for each machine"),
        ("count: 3, machines: [a, b]", "pools[0].count: wanted at most 2, as many as"),
        ("count: 2, machines: [a, a]", 'pools[0].machines[1]: the machine "a" is given twice'),
        ("count: 1, machines: [a], nodeNames: [b]", "nodes have the names of their machines"),
        (
            "count: 1, machines: [a], autoscaling: {min: 0, max: 1}",
            "machines that exist does not scale by itself",
        ),
        ("count: 1, machines: [A]", "lower-case letters"),
    ],
)
def test_machines_that_cannot_be_a_pool_are_refused(pool: str, words: str) -> None:
    head = "apiVersion: gpupool.io/v1alpha1\nkind: Cluster\n"
    text = f"{head}pools: [{{name: p, instanceType: ecs.g6.large, {pool}}}]\n"
    found = parse_cluster(text)
    assert isinstance(found, tuple)
    assert words in report(found, "x.yaml")


def test_a_machine_is_in_one_pool_of_the_file() -> None:
    head = "apiVersion: gpupool.io/v1alpha1\nkind: Cluster\n"
    one = "{{name: {}, instanceType: ecs.g6.large, count: 1, machines: [m]}}"
    found = parse_cluster(f"{head}pools: [{one.format('p')}, {one.format('q')}]\n")
    assert isinstance(found, tuple)
    assert 'the name "m" is already given to a node of pool "p"' in report(found, "x.yaml")
