"""Manifests that were written for other GPU systems run here with the share that they mean."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gpu_cluster import gpu_cluster
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import container, pod

pytestmark = pytest.mark.kubectl

MANIFESTS = Path(__file__).parent / "foreign"


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with gpu_cluster(kubectl_program, tmp_path_factory.mktemp("foreign")) as made:
        yield made


def gpupool(kubectl: Kubectl, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "gpupool", *arguments],
        env={**os.environ, "KUBECONFIG": str(kubectl.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("file", "name", "units", "percent"),
    [("hami", "hami-pod", 3, 30), ("kai", "kai-pod", 8, 0)],
)
def test_a_manifest_for_another_system_runs_with_its_share(
    kubectl: Kubectl, file: str, name: str, units: int, percent: int
) -> None:
    manifest = str(MANIFESTS / f"{file}.yaml")
    code, plan = gpupool(kubectl, "migrate", "-f", manifest)
    assert code == 0, plan
    assert f"Pod default/{name}: 1 pod would fit, on cn-shanghai.192.168.7.15" in plan
    _, explained = gpupool(kubectl, "explain", "-f", manifest)
    assert "Hint: words of another system were understood" in explained
    assert "did you mean" not in explained
    applied = kubectl.run("apply", "-f", manifest)
    assert applied.code == 0, applied.err
    assert applied.err.count("words of another system were understood") == 1
    kubectl.wait("condition=Ready", f"pod/{name}")
    made = kubectl.json("get", "pod", name)
    main = made["spec"]["containers"][0]
    limit = made["metadata"]["annotations"][f"limits.gpupool.io/{main['name']}"]
    if limit != "unlimited\n":
        assert limit.split()[1:] == [str(units * 16130 // 15), str(percent)]
    variables = kubectl("exec", name, "--", "env")
    assert f"ALIYUN_COM_GPU_MEM_CONTAINER={units}\n" in variables
    assert kubectl("exec", name, "--", "nvidia-smi", "-L").count("GPU-") == 1


def test_a_workload_is_told_once_and_its_pods_run(kubectl: Kubectl) -> None:
    applied = kubectl.run("apply", "-f", str(MANIFESTS / "volcano.yaml"))
    assert applied.err.count("Warning") == 1
    eventually(lambda: kubectl.field(".status.readyReplicas", "deployment", "volcano-work") == "2")


def test_migrate_reads_a_cluster_and_changes_nothing(kubectl: Kubectl) -> None:
    """All its pods were translated when they were created."""
    before = kubectl("get", "pods", "-A", "-o", "name")
    code, text = gpupool(kubectl, "migrate", "--all-namespaces", "-o", "json")
    assert code == 0, text
    plan = json.loads(text)
    assert plan["kind"] == "MigrationPlan"
    assert {item["verdict"] for item in plan["items"]} <= {"unchanged"}
    assert kubectl("get", "pods", "-A", "-o", "name") == before


def test_what_cannot_be_meant_is_refused_by_both(kubectl: Kubectl) -> None:
    asks = {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "99000"}}
    made = json.dumps(pod("too-large", container("c", "busybox", resources=asks)))
    refused = kubectl.run("apply", "-f", "-", stdin=made)
    assert refused.code == 1
    assert "wanted no more than a card has (Tesla V100-SXM2-16GB (15 units)), found 99000" in (
        refused.err
    )


def test_nobody_takes_a_card_by_annotation(kubectl: Kubectl) -> None:
    made = pod("taker", container("c", "busybox"))
    made["metadata"]["annotations"] = {"nvidia.cdi.k8s.io/container.c": "nvidia.com/gpu=all"}
    refused = kubectl.run("apply", "-f", "-", stdin=json.dumps(made))
    assert refused.code == 1
    assert "because only the scheduler writes it" in refused.err


def test_a_pod_chooses_its_card_by_uuid(kubectl: Kubectl) -> None:
    uuid = kubectl("exec", "kai-pod", "--", "printenv", "NVIDIA_VISIBLE_DEVICES").strip()
    asks = {"limits": {"aliyun.com/gpu-mem": "1"}}
    made = pod("chooser", container("c", "busybox", command=["sleep", "1000"], resources=asks))
    made["metadata"]["annotations"] = {"gpupool.io/card-uuids": uuid}
    kubectl.apply(made)
    kubectl.wait("condition=Ready", "pod/chooser")
    assert kubectl("exec", "chooser", "--", "printenv", "NVIDIA_VISIBLE_DEVICES").strip() == uuid
