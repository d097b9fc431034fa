"""The cluster of the documents, with its GPU nodes, for real kubectl."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpupool.testing import Cluster
from tests.e2e.kubectl import Kubectl, eventually

M40_NODES = ("cn-beijing.i-2ze8o1a45qdv5q8a7luz", "cn-beijing.i-2ze8o1a45qdv5q8a7lv0")
ISOLATED, NOT_ISOLATED = "cn-shanghai.192.168.7.157", "cn-shanghai.192.168.7.158"
GPU_NODES = (*M40_NODES, ISOLATED, NOT_ISOLATED)
AGENTS = ("po", "-n", "kube-system", "-l", "name=gpushare-device-plugin-ds")
# One node each, with and without isolation.
SHARED_POOLS = (
    {
        "name": "cgpu",
        "instanceType": "ecs.gn6v-c8g1.2xlarge",
        "count": 1,
        "labels": {"cgpu": "true", "cgpu.disable.isolation": "false"},
    },
    {
        "name": "cgpu-no-isolation",
        "instanceType": "ecs.gn6v-c8g1.2xlarge",
        "count": 1,
        "labels": {"cgpu": "true", "cgpu.disable.isolation": "true"},
    },
)
_WHOLE = {"nvidia.com/gpu": "1"}
_SHARED = {"aliyun.com/gpu-mem": "15", "aliyun.com/gpu-core.percentage": "100"}
_RESOURCES = {name: _WHOLE if name in M40_NODES else _SHARED for name in GPU_NODES}


@contextmanager
def gpu_cluster(program: Path, folder: Path) -> Iterator[Kubectl]:
    """Once every node counts its cards."""
    with Cluster() as cluster:
        kubectl = Kubectl(program, cluster.kubeconfig, folder)
        eventually(lambda: gpu_resources(kubectl) == _RESOURCES, within_s=60)
        yield kubectl


def gpu_resources(kubectl: Kubectl) -> dict[str, dict[str, str]]:
    """Allocatable, of the nodes that have any."""
    nodes = kubectl.json("get", "nodes")["items"]
    found = {
        node["metadata"]["name"]: {
            key: value for key, value in node["status"]["allocatable"].items() if "gpu" in key
        }
        for node in nodes
    }
    return {name: resources for name, resources in found.items() if resources}


def agents(kubectl: Kubectl) -> dict[str, str]:
    """Of ready ones: node -> pod."""
    pods = kubectl.json("get", *AGENTS)["items"]
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["name"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and any(s["ready"] for s in pod["status"].get("containerStatuses", ()))
    }
