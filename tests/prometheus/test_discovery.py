"""A real Prometheus asks the local cluster's API server what there is to scrape.

By `kubernetes_sd_configs`, which watch as controllers do. Debian's Prometheus cannot do that:
`python3 testbed/build.py prometheus` builds one that can.
"""

import json
import urllib.request
from collections import Counter
from pathlib import Path

import pytest
import yaml

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from testbed import build
from testbed.find_kubectl import ensure_kubectl
from testbed.processes import Child, free_port
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Kubectl, eventually

pytestmark = [pytest.mark.clients, pytest.mark.kubectl, pytest.mark.timeout(600)]

PATIENCE_S = 120.0
ROLES = ("node", "pod", "service", "endpoints", "endpointslice", "ingress")
INGRESS: Obj = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"name": "shop"},
    "spec": {
        "defaultBackend": {"service": {"name": "shop", "port": {"number": 80}}},
        "rules": [{"host": "shop.example"}],
    },
}


def _config(kubeconfig: Path) -> str:
    jobs = [
        {
            "job_name": role,
            "kubernetes_sd_configs": [{"role": role, "kubeconfig_file": str(kubeconfig)}],
            # Found is enough: there is no network to pods here.
            "relabel_configs": [{"action": "drop", "source_labels": ["job"], "regex": role}],
        }
        for role in ROLES
    ]
    return yaml.safe_dump({"scrape_configs": jobs})


def _found(port: int) -> list[dict[str, str]]:
    """Labels of all targets; while Prometheus starts, none."""
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/api/v1/targets?state=dropped", timeout=60
        ) as answer:
            dropped = json.load(answer)["data"]["droppedTargets"]
    except (OSError, KeyError, ValueError):
        return []
    return [each["discoveredLabels"] for each in dropped]


def _pods(port: int) -> set[str]:
    return {labels.get("__meta_kubernetes_pod_name", "") for labels in _found(port)}


def test_prometheus_finds_what_the_local_cluster_has_and_follows_it(tmp_path: Path) -> None:
    program, kubectl_program = build.find("prometheus"), ensure_kubectl()
    if program is None or kubectl_program is None:
        pytest.skip("NO PROMETHEUS that discovers pods: `python3 testbed/build.py prometheus`")
    port = free_port()
    with Cluster(config={"pools": list(SHARED_POOLS)}) as cluster:
        kubectl = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)
        kubectl.apply(INGRESS)
        (tmp_path / "prometheus.yaml").write_text(_config(cluster.kubeconfig))
        flags = (
            f"--config.file={tmp_path / 'prometheus.yaml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        server = Child("prometheus", [str(program), *flags], tmp_path / "prometheus.log")
        try:
            eventually(lambda: {labels["job"] for labels in _found(port)} == set(ROLES), PATIENCE_S)
            nodes = Counter(labels["job"] for labels in _found(port))["node"]
            assert nodes == len(kubectl.names("nodes"))
            kubectl("run", "late", "--image=pause", "--port=80")
            eventually(lambda: "late" in _pods(port), PATIENCE_S)
            kubectl("delete", "pod", "late", "--now")
            eventually(lambda: "late" not in _pods(port), PATIENCE_S)
            assert server.running, server.tail()
        finally:
            server.stop()
    assert "error" not in (tmp_path / "prometheus.log").read_text().lower()
