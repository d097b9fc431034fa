"""The whole local cluster: start-up, and a thousand nodes with ten thousand pods made, bound and
Running (timer containers)."""

import http.client
import ssl
import time
from pathlib import Path
from typing import Any

import orjson

from gpupool.cli.programs import ask_cluster
from gpupool.readings import read_nodes
from gpupool.testing import Cluster
from kubeclient.client import Kube
from kubeclient.resources import NODES

_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_TIMER = {"metadata": {"annotations": {"gpupool.io/runtime": "timer"}}}
_PATIENCE_S = 300.0


def measure_start() -> dict[str, Any]:
    """Seconds until the cluster answers: the best of three, the first of which also compiles."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        with Cluster():
            times.append(time.perf_counter() - began)
    return {"best_s": min(times), "all_s": times}


def measure_scale(nodes: int = 1_000, pods: int = 10_000) -> dict[str, Any]:
    config = {
        "apiVersion": "gpupool.io/v1alpha1",
        "kind": "Cluster",
        "quotas": {"nodesPerCluster": nodes, "routesPerCluster": nodes},
        "pools": [{"name": "workers", "count": nodes, "instanceType": "ecs.g6.2xlarge"}],
    }
    with Cluster(config=config) as cluster:
        client = _Client(cluster)
        client.send("PATCH", "/api/v1/namespaces/default", _TIMER)
        began = time.perf_counter()
        for number in range(10):
            client.send("POST", _DEPLOYMENTS, _deployment(f"d{number}", pods // 10))
        while (running := client.ready()) < pods:
            if time.perf_counter() - began > _PATIENCE_S:
                break
            time.sleep(0.5)
        return {
            "nodes": nodes,
            "pods": pods,
            "running": running,
            "seconds": time.perf_counter() - began,
        }


def measure_gpu_nodes(nodes: int = 200) -> dict[str, Any]:
    """Nodes with eight cards each, until every agent has registered and been counted."""
    pool = {"name": "cgpu", "count": nodes, "instanceType": "ecs.gn6v-c8g1.16xlarge"}
    config = {
        "quotas": {"nodesPerCluster": nodes, "routesPerCluster": nodes},
        "pools": [pool | {"labels": {"cgpu": "true"}}],
    }
    began = time.perf_counter()
    with Cluster(config=config) as cluster:
        client = _Client(cluster)
        while (counted := client.counted()) < nodes:
            if time.perf_counter() - began > _PATIENCE_S:
                break
            time.sleep(0.5)
        seconds = time.perf_counter() - began
        status = Path(
            f"/proc/{(cluster.directory / 'lock').read_text().strip()}/status"
        ).read_text()
        memory_kib = int(status.partition("VmRSS:")[2].split()[0])
        readings = _measure_readings(cluster)
    return {
        "nodes": nodes,
        "counted": counted,
        "seconds": seconds,
        "memory_mib": memory_kib // 1024,
        **readings,
    }


def _measure_readings(cluster: Cluster) -> dict[str, Any]:
    """All agents are asked for readings once, as `gpupool gpu list` does it."""

    async def ask(kube: Kube) -> dict[str, Any]:
        nodes = [node["metadata"]["name"] for node in (await kube.list(NODES)).items]
        began, worked = time.perf_counter(), time.process_time()
        found = await read_nodes(kube, nodes)
        return {
            "readings": len(found.by_node),
            "readings_seconds": time.perf_counter() - began,
            "readings_client_cpu_seconds": time.process_time() - worked,
        }

    return ask_cluster(ask, kubeconfig=str(cluster.kubeconfig))


def _deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    }


class _Client:
    def __init__(self, cluster: Cluster) -> None:
        self._headers = {"Authorization": f"Bearer {cluster.token}"}
        context = ssl.create_default_context(cafile=str(cluster.ca))
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", cluster.port, context=context, timeout=60
        )

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        raw = orjson.dumps(body) if body is not None else None
        headers = {**self._headers, "Content-Type": kind}
        self._connection.request(method, path, body=raw, headers=headers)
        answer = self._connection.getresponse()
        parsed: dict[str, Any] = orjson.loads(answer.read())
        if answer.status >= 400:
            raise RuntimeError(parsed["message"])
        return parsed

    def counted(self) -> int:
        items = self.send("GET", "/api/v1/nodes")["items"]
        shared = "aliyun.com/gpu-mem"
        return sum(item["status"]["allocatable"].get(shared, "0") != "0" for item in items)

    def ready(self) -> int:
        items = self.send("GET", _DEPLOYMENTS)["items"]
        return sum(item.get("status", {}).get("readyReplicas", 0) for item in items)
