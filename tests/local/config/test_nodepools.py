"""NodePool objects: the same pools as in a cluster file."""

import jsonschema_rs
import pytest

from gpupool.local.config.cluster_file import (
    ClusterFile,
    default_cluster_text,
    parse_cluster,
)
from gpupool.local.config.nodepools import nodepool_crd, nodepool_object, pool_of
from gpupool.local.config.spec import ClusterSpec, PoolSpec
from kubeclient.objects import Obj

EVERYTHING = """
apiVersion: gpupool.io/v1alpha1
kind: Cluster
pools:
  - name: everything
    count: 2
    instanceType: ecs.gn6v-c8g1.2xlarge
    region: cn-shanghai
    zone: cn-shanghai-b
    os: Alibaba Cloud Linux 2.x
    labels: {team: blue}
    taints: [{key: dedicated, value: blue, effect: NoSchedule}, {key: k, effect: NoExecute}]
    tags: {a: b}
    resourceGroup: rg-1
    managed: true
    autoscaling: {min: 1, max: 5}
    naming: address
    nodeNames: [cn-shanghai.192.168.9.9]
"""


def cluster(text: str) -> ClusterSpec:
    file = parse_cluster(text)
    assert isinstance(file, ClusterFile)
    return file.spec


@pytest.mark.parametrize("text", [default_cluster_text(), EVERYTHING])
def test_a_pool_is_the_same_after_being_an_object(text: str) -> None:
    spec = cluster(text)
    for pool in spec.pools:
        assert pool_of(nodepool_object(pool), spec) == pool


def crd_schema() -> Obj:
    schema: Obj = nodepool_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize("text", [default_cluster_text(), EVERYTHING])
def test_the_objects_fit_the_schema_of_their_kind(text: str) -> None:
    for pool in cluster(text).pools:
        jsonschema_rs.validate(crd_schema(), nodepool_object(pool))


def walk(schema: Obj) -> list[Obj]:
    below = [*schema.get("properties", {}).values()]
    below += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    return [schema] + [found for each in below for found in walk(each)]


def test_the_schema_is_structural() -> None:
    for schema in walk(crd_schema()):
        assert "type" in schema
        assert not {"$ref", "propertyNames", "title"} & schema.keys()
        assert not ("properties" in schema and "additionalProperties" in schema)


def test_the_smallest_pool_takes_region_and_zone_of_the_cluster() -> None:
    spec = cluster(default_cluster_text())
    pool = pool_of({"metadata": {"name": "a"}, "spec": {"instanceType": "ecs.g6.large"}}, spec)
    assert isinstance(pool, PoolSpec)
    assert (pool.count, pool.region, pool.zone) == (1, "cn-beijing", "cn-beijing-a")


def test_a_bad_pool_is_reported_with_all_its_problems() -> None:
    spec = cluster(default_cluster_text())
    problems = pool_of({"metadata": {"name": "a"}, "spec": {"instanceType": "ecs.g6.lrge"}}, spec)
    assert not isinstance(problems, PoolSpec)
    assert [problem.text for problem in problems] == [
        'no instance type "ecs.g6.lrge" is known; did you mean "ecs.g6.large"?'
    ]
    problems = pool_of({"metadata": {"name": "a"}, "spec": {"count": -1, "cuont": 1}}, spec)
    assert not isinstance(problems, PoolSpec)
    assert len(problems) == 3
