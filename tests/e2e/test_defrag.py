"""Plans that make room, and what `--apply` does with a real cluster."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.kubectl import Ended, Kubectl, eventually

pytestmark = pytest.mark.kubectl

POOLS = [{"name": "big", "instanceType": "ecs.gn6v-c8g1.8xlarge", "count": 2}]  # four cards each


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        yield running


@pytest.fixture
def kubectl(cluster: Cluster, kubectl_program: Path, tmp_path: Path) -> Kubectl:
    made = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)
    labelled = ("get", "nodes", "-l", "aliyun.accelerator/nvidia_name", "-o", "name")
    eventually(lambda: len(made(*labelled).split()) == 2, within_s=60)
    return made


def workload(name: str, cards: int, copies: int) -> Obj:
    """Its pods prefer different nodes."""
    labels = {"app": name}
    apart = {
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": labels},
            "topologyKey": "kubernetes.io/hostname",
        },
    }
    container = {
        "name": "c",
        "image": "pause",
        "resources": {"limits": {"nvidia.com/gpu": cards}},
    }
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}
    spec = {
        "containers": [container],
        "affinity": {"podAntiAffinity": preferred},
        "terminationGracePeriodSeconds": 0,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": copies,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def gpupool(kubectl: Kubectl, *words: str) -> Ended:
    command = [sys.executable, "-m", "gpupool", *words, "--kubeconfig", str(kubectl.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def nodes_of(kubectl: Kubectl, app: str) -> list[str]:
    pods = kubectl.json("get", "pods", "-l", f"app={app}")["items"]
    living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return sorted(pod["spec"].get("nodeName", "") for pod in living)


def test_pods_move_as_planned_and_the_large_one_fits(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.apply(workload("small", 1, 2))
    kubectl("rollout", "status", "deployment/small", "--timeout=120s")
    assert len(set(nodes_of(kubectl, "small"))) == 2
    large = tmp_path / "large.json"
    large.write_text(json.dumps(workload("large", 4, 1)))
    # Planned, and not done.
    planned = gpupool(kubectl, "defrag", "-f", str(large), "-o", "json")
    assert planned.code == 0, planned.err
    plan = json.loads(planned.out)
    (move,) = plan["moves"]
    assert len(set(nodes_of(kubectl, "small"))) == 2
    # Done.
    done = gpupool(kubectl, "defrag", "--for", str(large), "--apply")
    assert done.code == 0, done.err
    assert "1 of 1 pods moved." in done.err
    assert nodes_of(kubectl, "small") == [move["node"]] * 2
    cordoned = "gpupool.io/cordoned-cards"
    for node in kubectl.json("get", "nodes")["items"]:
        assert cordoned not in (node["metadata"].get("annotations") or {})
    kubectl.apply(workload("large", 4, 1))
    kubectl("rollout", "status", "deployment/large", "--timeout=120s")
    assert nodes_of(kubectl, "large") == [plan["placements"][0]["node"]]
    # Both nodes are in use now: nothing would help.
    nothing = gpupool(kubectl, "defrag", "--for", str(large))
    assert nothing.code == 1
    assert "There is no plan" in nothing.out


def test_a_pod_that_may_not_move_stays(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("delete", "deployment", "--all")
    eventually(lambda: not nodes_of(kubectl, "large") and not nodes_of(kubectl, "small"))
    fixed = workload("fixed", 1, 2)
    fixed["spec"]["template"]["metadata"]["labels"]["gpupool.io/may-move"] = "false"
    kubectl.apply(fixed)
    kubectl("rollout", "status", "deployment/fixed", "--timeout=120s")
    large = tmp_path / "large.json"
    large.write_text(json.dumps(workload("large", 4, 1)))
    assert "There is no plan" in gpupool(kubectl, "defrag", "--for", str(large)).out


def test_more_moves_are_advised_where_they_make_a_plan(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("delete", "deployment", "--all")
    eventually(lambda: not nodes_of(kubectl, "fixed") and not nodes_of(kubectl, "small"))
    kubectl.apply(workload("small", 1, 4))
    kubectl("rollout", "status", "deployment/small", "--timeout=120s")
    large = tmp_path / "large.json"
    large.write_text(json.dumps(workload("large", 4, 1)))
    refused = gpupool(kubectl, "defrag", "--for", str(large), "--max-moves", "1")
    assert refused.code == 1
    assert "With more moves there is one: --max-moves 2." in refused.out
    large.write_text(json.dumps(workload("large", 5, 1)))
    refused = gpupool(kubectl, "defrag", "--for", str(large), "--max-moves", "1")
    assert "--max-moves" not in refused.out
