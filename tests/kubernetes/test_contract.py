"""What agent, scheduler, admission and a real kubelet promise one another."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool as command
from gpupool.contract.names import ANNOTATION_ALLOCATION, RESOURCE_GPU, RESOURCE_GPU_MEM
from testbed.cluster import Kubernetes
from testbed.installation import Installation
from testbed.story import OLD, PLAIN, SHARED, UNISOLATED, WHOLE
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, allocatable, nodes_with, registered
from tests.kubernetes.conftest import SHARED as SHARED_NODES
from tests.kubernetes.pods import gpu_pod, variables

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]


def test_nodes_have_labels_and_the_kubelet_counts_cards(
    gpupool: Installation, admin: Kubectl
) -> None:
    def offered(node: str, resource: str) -> str:
        return allocatable(admin, node).get(resource, "0")

    eventually(lambda: offered(WHOLE, RESOURCE_GPU) == "1", LONGEST_S)
    eventually(lambda: offered(OLD, RESOURCE_GPU) == "8", LONGEST_S)
    eventually(lambda: offered(SHARED, RESOURCE_GPU_MEM) == "15", LONGEST_S)
    eventually(lambda: offered(UNISOLATED, RESOURCE_GPU_MEM) == "15", LONGEST_S)
    assert offered(SHARED, RESOURCE_GPU) == "0"
    assert RESOURCE_GPU not in allocatable(admin, PLAIN)
    labels = admin.json("get", "node", WHOLE)["metadata"]["labels"]
    assert labels["aliyun.accelerator/nvidia_name"] == "Tesla-M40"
    assert labels["aliyun.accelerator/nvidia_mem"] == "12209MiB"
    assert labels["aliyun.accelerator/nvidia_count"] == "1"
    assert labels["alpha.kubernetes.io/nvidia-gpu-name"] == "Tesla-M40"


def test_the_doctor_finds_nothing_wrong(installed: None, kubeconfig: Path) -> None:
    asked = ["doctor", "--kubeconfig", str(kubeconfig)]
    said = eventually(lambda: healthy(asked), LONGEST_S)
    assert "decides about the GPUs" in said
    assert "GPU pods are wired to their allocation" in said


def healthy(asked: list[str]) -> str:
    """What it says once it ends with 0."""
    done = CliRunner().invoke(command, asked)
    return "" if done.exit_code else done.output


def test_the_allocation_of_the_binding_reaches_the_container(kubectl: Kubectl) -> None:
    wanted = nodes_with(kubectl, SHARED_NODES)
    place = {"nodeSelector": {"cgpu.disable.isolation": "false"}}
    kubectl.apply(gpu_pod("share", RESOURCE_GPU_MEM, 3, **place))
    kubectl.wait("condition=Ready", "pod/share", within_s=80)
    pod = kubectl.json("get", "pod", "share")
    annotations = pod["metadata"]["annotations"]
    (card,) = json.loads(annotations[ANNOTATION_ALLOCATION])["containers"]["main"]["cards"]
    env = variables(kubectl("exec", "share", "--", "env"))
    assert pod["spec"]["nodeName"] in wanted
    assert env["NVIDIA_VISIBLE_DEVICES"] == card["uuid"]
    assert env["ALIYUN_COM_GPU_MEM_IDX"] == str(card["index"])
    assert env["ALIYUN_COM_GPU_MEM_POD"] == env["ALIYUN_COM_GPU_MEM_CONTAINER"] == "3"
    assert env["ALIYUN_COM_GPU_MEM_DEV"] == "15"
    assert env["CGPU_DISABLE"] == "false"
    limits = kubectl("exec", "share", "--", "cat", "/etc/gpupool/limits")
    assert limits == f"{card['uuid']} 3226 0\n"


def test_a_pod_that_missed_admission_sees_no_card(kubectl: Kubectl, gpupool: Installation) -> None:
    """As if somebody had bound it by hand while the webhooks were not registered."""
    gpupool.kill("admission")
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        # Not deleted: admission fills them in again, and may not create any.
        kubectl("patch", kind, "gpupool-admission", "--type=merge", '-p={"webhooks": null}')
    stray = kubectl.write("stray.json", gpu_pod("stray", RESOURCE_GPU_MEM, 1, nodeName=SHARED))
    try:
        # The API server goes on asking for some moments.
        eventually(lambda: kubectl.run("apply", "-f", stray).code == 0, LONGEST_S)
    finally:
        gpupool.start("admission")
        eventually(lambda: registered(kubectl), LONGEST_S)
    kubectl.wait("condition=Ready", "pod/stray", within_s=80)
    env = variables(kubectl("exec", "stray", "--", "env"))
    assert env["NVIDIA_VISIBLE_DEVICES"] == "void"
    failed = kubectl.run("exec", "stray", "--", "nvidia-smi")
    assert failed.code != 0
    assert "NVIDIA-SMI has failed" in failed.out + failed.err


def test_nobody_else_writes_an_allocation(kubectl: Kubectl) -> None:
    kubectl.apply(gpu_pod("held", RESOURCE_GPU_MEM, 1))
    kubectl.wait("condition=Ready", "pod/held", within_s=80)
    said = kubectl.refused(
        "annotate", "pod", "held", "--overwrite", f"{ANNOTATION_ALLOCATION}={{}}"
    )
    assert "allocations.gpupool.io" in said


def test_a_new_kubelet_gets_the_cards_back_and_pods_stay(
    kubectl: Kubectl, kubernetes: Kubernetes
) -> None:
    place = {"nodeSelector": {"cgpu.disable.isolation": "false"}}
    kubectl.apply(gpu_pod("steady", RESOURCE_GPU_MEM, 3, **place))
    kubectl.wait("condition=Ready", "pod/steady", within_s=80)
    before = kubectl.json("get", "pod", "steady")["status"]["containerStatuses"]
    (node,) = (each for each in kubernetes.nodes if each.name == SHARED)
    heartbeat = ".status.conditions[?(@.type=='Ready')].lastHeartbeatTime"
    node.kill_kubelet()
    seen = kubectl.field(heartbeat, "node", SHARED)
    eventually(lambda: kubectl.field(heartbeat, "node", SHARED) != seen, LONGEST_S)
    eventually(lambda: allocatable(kubectl, SHARED).get(RESOURCE_GPU_MEM) == "15", LONGEST_S)
    after = kubectl.json("get", "pod", "steady")["status"]["containerStatuses"]
    assert [each["containerID"] for each in after] == [each["containerID"] for each in before]
    assert after[0]["restartCount"] == 0
    kubectl.apply(gpu_pod("next", RESOURCE_GPU_MEM, 3, **place))
    kubectl.wait("condition=Ready", "pod/next", within_s=80)
