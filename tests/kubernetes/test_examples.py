"""The manifests of examples/ in real containers: the story of the documents, on a real kubelet."""

import re
import urllib.request
from pathlib import Path

import pytest
import yaml

from testbed.installation import Installation
from testbed.story import SHARED as SHARED_NODE
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import (
    ELSEWHERE,
    LONGEST_S,
    MANY_WHOLE,
    PLAIN,
    SHARED,
    UNISOLATED,
    WHOLE,
    allocatable,
    nodes_with,
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def applied(kubectl: Kubectl, example: str) -> None:
    """But for two things: on the test-bed there is no registry to look for newer images, and our
    containers do not listen to SIGTERM."""
    documents = list(yaml.safe_load_all((EXAMPLES / example).read_text(encoding="utf-8")))
    for document in documents:
        spec = document["spec"]
        pod = spec.get("template", document)["spec"]
        for container in pod.get("containers", ()):
            container["imagePullPolicy"] = "IfNotPresent" if ELSEWHERE else "Never"
        if "containers" in pod:
            pod["terminationGracePeriodSeconds"] = 0
    kubectl.apply(*documents)


def node_of(kubectl: Kubectl, pod: str) -> str:
    return kubectl.field(".spec.nodeName", "pod", pod)


def test_a_notebook_runs_where_the_label_says(kubectl: Kubectl) -> None:
    wanted = nodes_with(kubectl, WHOLE)
    applied(kubectl, "notebook.yaml")
    kubectl("rollout", "status", "deployment/tf-notebook", "--timeout=80s")
    (pod,) = kubectl.names("pods")
    assert node_of(kubectl, pod) in wanted
    assert "Tesla M40" in kubectl("exec", pod, "--", "nvidia-smi", "-L")


def test_a_pod_keeps_off_gpu_nodes(kubectl: Kubectl) -> None:
    """The cluster's own kube-scheduler sees the labels, too."""
    wanted = nodes_with(kubectl, PLAIN)
    applied(kubectl, "not-on-gpu-nodes.yaml")
    kubectl.wait("condition=Ready", "pod/not-in-gpu-node", within_s=80)
    assert node_of(kubectl, "not-in-gpu-node") in wanted


@pytest.mark.skipif(bool(ELSEWHERE), reason="our own image shows the cards on its page")
def test_a_notebook_answers_behind_its_service(kubectl: Kubectl) -> None:
    """Through the API server: there is no network between these nodes for an address to be on."""
    applied(kubectl, "notebook-service.yaml")
    kubectl("rollout", "status", "deployment/tf-notebook", "--timeout=80s")
    # kubectl gives a forwarded port up when nobody listens behind it yet.
    ask = ("exec", "deployment/tf-notebook", "--", "wget", "-q", "-O-", "http://127.0.0.1:8888/")
    eventually(lambda: kubectl.run(*ask).code == 0, LONGEST_S)
    with kubectl.start("port-forward", "service/tf-notebook", ":80") as forward:
        said = forward.shows("Forwarding from 127.0.0.1", within_s=60)
        port = re.search(r"127\.0\.0\.1:(\d+)", said)
        assert port is not None
        url = f"http://127.0.0.1:{port[1]}/"
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert b"GPU 0: Tesla" in answer.read()


def test_shared_cards_with_and_without_isolation(kubectl: Kubectl) -> None:
    isolated, unisolated = nodes_with(kubectl, SHARED), nodes_with(kubectl, UNISOLATED)
    applied(kubectl, "shared-gpus.yaml")
    pods = ("pod/cgpu-test-0", "pod/cgpu-test-no-isolation-0")
    eventually(lambda: all(kubectl.run("get", pod).code == 0 for pod in pods), LONGEST_S)
    kubectl.wait("condition=Ready", *pods, within_s=80)
    assert node_of(kubectl, "cgpu-test-0") in isolated
    assert node_of(kubectl, "cgpu-test-no-isolation-0") in unisolated
    seen = kubectl("exec", "cgpu-test-0", "--", "nvidia-smi")
    assert "/   3226MiB |" in seen
    assert "16130MiB" not in seen
    if not ELSEWHERE:  # our own image asks for all that there is: 50 times 64 MiB fit its share
        eventually(lambda: "took 3200 MiB" in kubectl("logs", "cgpu-test-0"), LONGEST_S)
    assert "/  16130MiB |" in kubectl("exec", "cgpu-test-no-isolation-0", "--", "nvidia-smi")
    env = kubectl("exec", "cgpu-test-no-isolation-0", "--", "env")
    assert "ALIYUN_COM_GPU_MEM_CONTAINER=3\n" in env
    assert "ALIYUN_COM_GPU_MEM_DEV=15\n" in env
    assert "CGPU_DISABLE=true\n" in env


def test_the_agent_may_be_killed_at_any_time(kubectl: Kubectl, gpupool: Installation) -> None:
    applied(kubectl, "shared-gpus.yaml")
    eventually(lambda: kubectl.run("get", "pod", "cgpu-test-0").code == 0, LONGEST_S)
    kubectl.wait("condition=Ready", "pod/cgpu-test-0", within_s=80)
    gpupool.kill(f"agent-{SHARED_NODE}")
    eventually(lambda: allocatable(kubectl, SHARED_NODE)["aliyun.com/gpu-mem"] == "0", LONGEST_S)
    gpupool.start(f"agent-{SHARED_NODE}")
    eventually(lambda: allocatable(kubectl, SHARED_NODE)["aliyun.com/gpu-mem"] == "15", LONGEST_S)
    assert kubectl.field(".status.containerStatuses[0].restartCount", "pod", "cgpu-test-0") == "0"
    assert "3226MiB" in kubectl("exec", "cgpu-test-0", "--", "nvidia-smi")


def test_a_pod_of_the_alpha_api_runs_as_it_is(kubectl: Kubectl) -> None:
    wanted = nodes_with(kubectl, MANY_WHOLE)
    applied(kubectl, "alpha-pod.yaml")
    kubectl.wait("condition=Ready", "pod/gpu-pod", within_s=80)
    assert node_of(kubectl, "gpu-pod") in wanted
    seen = [
        set(kubectl("exec", "gpu-pod", "-c", name, "--", "nvidia-smi", "-L").splitlines())
        for name in ("gpu-container-1", "gpu-container-2")
    ]
    uuids = [{line.partition("UUID: ")[2] for line in lines} for lines in seen]
    assert [len(each) for each in uuids] == [2, 3]
    assert not uuids[0] & uuids[1]
