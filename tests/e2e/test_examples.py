"""The manifests of examples/, as the documents tell the story, with the real kubectl."""

import itertools
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpupool.local.programs import jupyter
from gpupool.testing import Cluster
from tests.e2e.api import ready_nodes
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.test_kubectl_services import address_of, port_of

pytestmark = pytest.mark.kubectl

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
# The default cluster, a node of the alpha API's time beside it, and fewer of what is not looked at.
POOLS = [
    {"name": "control", "role": "control-plane", "instanceType": "ecs.g6.xlarge", "count": 1},
    {"name": "workers", "instanceType": "ecs.g6.xlarge", "count": 1},
    {"name": "gpu", "instanceType": "ecs.gn4-c4g1.xlarge", "count": 2},
    {"name": "old", "instanceType": "ecs.gn5-c8g1.14xlarge", "count": 1},
    *SHARED_POOLS,
]
_serial = itertools.count(1)


@pytest.fixture(scope="module")
def gpu_cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        eventually(lambda: len(ready_nodes(running)) == 7, within_s=60)
        yield running


@pytest.fixture
def kubectl(gpu_cluster: Cluster, kubectl_program: Path, tmp_path: Path) -> Iterator[Kubectl]:
    """In a namespace of its own, on nodes whose cards are known."""
    admin = Kubectl(kubectl_program, gpu_cluster.kubeconfig, tmp_path)
    labelled = ("get", "nodes", "-l", "aliyun.accelerator/nvidia_name", "-o", "name")
    eventually(lambda: len(admin(*labelled).split()) == 5, within_s=60)
    name = f"example-{next(_serial)}"
    admin("create", "namespace", name)
    yield Kubectl(kubectl_program, gpu_cluster.kubeconfig, tmp_path, name)
    admin("delete", "namespace", name)


def nodes_of(kubectl: Kubectl, selector: str) -> set[str]:
    return set(kubectl("get", "nodes", "-l", selector, "-o", "name").split())


def node_of(kubectl: Kubectl, pod: str) -> str:
    return f"node/{kubectl.field('.spec.nodeName', 'pod', pod)}"


def applied(kubectl: Kubectl, example: str) -> None:
    kubectl("apply", "-f", str(EXAMPLES / example))


def test_every_example_is_a_manifest_that_says_how_to_use_it() -> None:
    for path in EXAMPLES.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert f"kubectl apply -f examples/{path.name}" in text
        assert all(document["kind"] for document in yaml.safe_load_all(text))


def test_a_notebook_runs_where_the_label_says(kubectl: Kubectl) -> None:
    applied(kubectl, "notebook.yaml")
    kubectl("rollout", "status", "deployment/tf-notebook")
    (pod,) = kubectl.names("pods")
    assert node_of(kubectl, pod) in nodes_of(kubectl, "aliyun.accelerator/nvidia_name=Tesla-M40")
    assert "Tesla M40" in kubectl("exec", pod, "--", "nvidia-smi", "-L")


def test_a_pod_keeps_off_gpu_nodes(kubectl: Kubectl) -> None:
    applied(kubectl, "not-on-gpu-nodes.yaml")
    kubectl.wait("condition=Ready", "pod/not-in-gpu-node")
    assert node_of(kubectl, "not-in-gpu-node") not in nodes_of(
        kubectl, "aliyun.accelerator/nvidia_name"
    )


def page(url: str, password: str) -> str:
    """What a browser shows after the password was typed in, on our page or JupyterLab's."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(f"{url}login", timeout=60) as answer:
        hidden = re.search(r'name="_xsrf" value="([^"]+)"', answer.read().decode())
    fields = {"password": password} | ({"_xsrf": hidden[1]} if hidden else {})
    form = urllib.parse.urlencode(fields).encode()
    with browser.open(f"{url}login", form, timeout=60) as answer:
        return str(answer.read().decode())


def test_a_notebook_is_reached_at_its_external_address(kubectl: Kubectl) -> None:
    applied(kubectl, "notebook-service.yaml")
    kubectl("rollout", "status", "deployment/tf-notebook")
    address = address_of(kubectl, "tf-notebook")
    url = f"http://{address}:{port_of(kubectl, 'tf-notebook', 80)}/"
    found = eventually(lambda: page(url, "mypassw0rd"))
    assert ("jupyter-config-data" if jupyter.is_installed() else "/device:GPU:0") in found
    with pytest.raises(urllib.error.HTTPError, match="401"):
        page(url, "wrong")
    program = "from tensorflow.python.client import device_lib as d; print(d.list_local_devices())"
    listed = kubectl("exec", "deployment/tf-notebook", "--", "python3", "-c", program)
    assert 'name: "/device:GPU:0"' in listed


def test_shared_cards_with_and_without_isolation(kubectl: Kubectl) -> None:
    applied(kubectl, "shared-gpus.yaml")
    kubectl.wait("condition=Ready", "pod/cgpu-test-0", "pod/cgpu-test-no-isolation-0")
    isolated = kubectl("exec", "cgpu-test-0", "--", "nvidia-smi")
    assert "3226MiB |" in isolated
    assert "16130MiB" not in isolated
    free = kubectl("exec", "cgpu-test-no-isolation-0", "--", "nvidia-smi")
    assert " gpu-player " in free
    assert sys.prefix not in free
    assert "16130MiB |" in free
    assert "cgpu" in kubectl("get", "nodes", node_of(kubectl, "cgpu-test-0")[5:], "--show-labels")
    env = kubectl("exec", "cgpu-test-no-isolation-0", "--", "env")
    assert "ALIYUN_COM_GPU_MEM_CONTAINER=3\n" in env
    assert "ALIYUN_COM_GPU_MEM_DEV=15\n" in env
    assert "CGPU_DISABLE=true\n" in env
    assert "CGPU_DISABLE=false\n" in kubectl("exec", "cgpu-test-0", "--", "env")


def gpupool(*arguments: str, home: Path | None = None) -> str:
    environment = dict(os.environ) | ({"GPUPOOL_HOME": str(home)} if home else {})
    command = [sys.executable, "-m", "gpupool", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_pods_and_their_cards_are_listed(kubectl: Kubectl) -> None:
    applied(kubectl, "shared-gpus.yaml")
    kubectl.wait("condition=Ready", "pod/cgpu-test-0", "pod/cgpu-test-no-isolation-0")
    where = ("--kubeconfig", str(kubectl.kubeconfig))
    shown = gpupool("gpu", "pods", "-n", kubectl.namespace, *where)
    words = [line.split("   ") for line in shown.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in words]
    assert [(row[0], *row[5:]) for row in cells[1:]] == [
        ("cgpu-test-0", "3226MiB", "3 of 15 GiB", "limiter"),
        ("cgpu-test-no-isolation-0", "3226MiB", "3 of 15 GiB", "none"),
    ]


def test_an_example_is_run_by_name(gpu_cluster: Cluster, kubectl: Kubectl) -> None:
    home = gpu_cluster.directory.parent.parent
    assert "shared-gpus" in gpupool("example", home=home)
    named = ("--name", gpu_cluster.directory.name)
    shown = gpupool("example", "notebook", "--no-install", *named, home=home)
    assert "whole card" in shown
    assert "kubectl port-forward deployment/tf-notebook 8888" in shown
    assert "replaced" not in shown
    assert "http://localhost:8888 (password: mypassw0rdv)" in shown
    admin = Kubectl(kubectl.program, kubectl.kubeconfig, kubectl.folder)

    def pods() -> list[str]:
        return admin("get", "pods", "-l", "app=tf-notebook", "-o", "name").split()

    (old,) = pods()
    shown = gpupool("example", "notebook-service", "--no-install", *named, home=home)
    assert old.removeprefix("pod/") not in shown  # it is of the same Deployment
    assert "(password: mypassw0rd)." in shown
    replaced = "Deployment tf-notebook was there before, made otherwise: its pods were replaced."
    assert replaced in shown
    admin("delete", "-f", str(EXAMPLES / "notebook-service.yaml"))


def test_a_cluster_is_started_with_an_example_and_says_once_what_comes_next(
    gpu_cluster: Cluster, kubectl: Kubectl
) -> None:
    """As `make up` and `make notebook` do."""
    home, name = gpu_cluster.directory.parent.parent, gpu_cluster.directory.name
    shown = gpupool("up", "--name", name, "--example", "shared-gpus", home=home)
    assert shown.index("cgpu-test-0") < shown.index("\nNext:\n")
    assert shown.count("Next:") == shown.count("export KUBECONFIG=") == 1
    admin = Kubectl(kubectl.program, kubectl.kubeconfig, kubectl.folder)
    admin("delete", "-f", str(EXAMPLES / "shared-gpus.yaml"))


def test_the_plugin_of_a_node_may_be_deleted_at_any_time(kubectl: Kubectl) -> None:
    applied(kubectl, "shared-gpus.yaml")
    kubectl.wait("condition=Ready", "pod/cgpu-test-0")
    node = node_of(kubectl, "cgpu-test-0")[5:]
    system = Kubectl(kubectl.program, kubectl.kubeconfig, kubectl.folder, "kube-system")

    def plugin() -> str:
        items = system.json("get", "pods", "-l", "name=gpushare-device-plugin-ds")["items"]
        names = [
            item["metadata"]["name"]
            for item in items
            if item["spec"]["nodeName"] == node and item["status"].get("phase") == "Running"
        ]
        return names[0] if len(names) == 1 else ""

    old = eventually(plugin)
    started = kubectl.field(".status.startTime", "pod", "cgpu-test-0")
    system("delete", "pod", old)
    eventually(lambda: plugin() not in ("", old))
    units = "{.status.allocatable.aliyun\\.com/gpu-mem}"
    eventually(lambda: kubectl("get", "node", node, "-o", f"jsonpath={units}") == "15")
    assert kubectl.field(".status.startTime", "pod", "cgpu-test-0") == started
    assert kubectl.field(".status.containerStatuses[0].restartCount", "pod", "cgpu-test-0") == "0"


def test_a_pod_of_the_alpha_api_runs_as_it_is(kubectl: Kubectl) -> None:
    applied(kubectl, "alpha-pod.yaml")
    kubectl.wait("condition=Ready", "pod/gpu-pod")
    label = "alpha.kubernetes.io/nvidia-gpu-name=Tesla-P100-PCIE-16GB"
    assert node_of(kubectl, "gpu-pod") in nodes_of(kubectl, label)
    seen = [
        set(kubectl("exec", "gpu-pod", "-c", name, "--", "nvidia-smi", "-L").splitlines())
        for name in ("gpu-container-1", "gpu-container-2")
    ]
    uuids = [{line.partition("UUID: ")[2] for line in lines} for lines in seen]
    assert [len(each) for each in uuids] == [2, 3]
    assert not uuids[0] & uuids[1]
