"""GPU nodes as the documents show them: labels, agents, whole cards, shared cards."""

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from kubeclient.objects import Obj
from tests.e2e.gpu_cluster import (
    AGENTS,
    GPU_NODES,
    ISOLATED,
    M40_NODES,
    NOT_ISOLATED,
    agents,
    gpu_cluster,
    gpu_resources,
)
from tests.e2e.kubectl import Kubectl, Running, eventually
from tests.e2e.objects import container, pod, shell

pytestmark = pytest.mark.kubectl

PASSWORD = "mypassw0rdv"


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with gpu_cluster(kubectl_program, tmp_path_factory.mktemp("gpu")) as made:
        yield made


def asking(name: str, resource: str, count: int | str, image: str, **more: Any) -> Obj:
    return container(name, image, resources={"limits": {resource: count}}, **more)


def labelled(kind: str, name: str, template: Obj, **spec: Any) -> Obj:
    labels = {"app": name}
    full = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
        **spec,
    }
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": full}


@pytest.fixture(scope="module")
def notebook(kubectl: Kubectl) -> Kubectl:
    """The Deployment of the documents, running."""
    page = asking(
        "tf-notebook",
        *("nvidia.com/gpu", 1, "tensorflow/tensorflow:1.4.1-gpu-py3"),
        ports=[{"containerPort": 8888, "hostPort": 8888}],
        # The page, whether JupyterLab is installed or not: tests/browser has JupyterLab.
        env=[
            {"name": "PASSWORD", "value": PASSWORD},
            {"name": "GPUPOOL_NOTEBOOK", "value": "page"},
        ],
    )
    selector = {"aliyun.accelerator/nvidia_name": "Tesla-M40"}
    template = {"nodeSelector": selector, "containers": [page]}
    kubectl.apply(labelled("Deployment", "tf-notebook", template))
    kubectl("rollout", "status", "deployment/tf-notebook", "--timeout=60s")
    return kubectl


def test_a_gpu_node_has_the_labels_of_the_documents(kubectl: Kubectl) -> None:
    labels = kubectl.json("get", "node", M40_NODES[0])["metadata"]["labels"]
    assert labels["aliyun.accelerator/nvidia_count"] == "1"
    assert labels["aliyun.accelerator/nvidia_mem"] == "12209MiB"
    assert labels["aliyun.accelerator/nvidia_name"] == "Tesla-M40"
    shown = kubectl("describe", "node", M40_NODES[0])
    assert "Labels:             aliyun.accelerator/nvidia_count=1" in shown
    assert re.search(r"Capacity:\n(?:.*\n)*?\s+nvidia\.com/gpu:\s+1\n", shown)


def test_gpu_nodes_are_found_by_the_name_of_their_card(kubectl: Kubectl) -> None:
    found = kubectl.names("no", "-l", "aliyun.accelerator/nvidia_name=Tesla-M40")
    assert sorted(found) == sorted(M40_NODES)


def test_every_gpu_node_has_an_agent(kubectl: Kubectl) -> None:
    assert sorted(agents(kubectl)) == sorted(GPU_NODES)
    shown = kubectl("get", *AGENTS, "-o", "wide")
    assert re.search(r"gpushare-device-plugin-ds-\w{5} .* 192\.168\.7\.157 +" + ISOLATED, shown)
    log = kubectl("logs", "-n", "kube-system", agents(kubectl)[ISOLATED])
    assert "aliyun.com/gpu-mem" in log


def test_a_whole_card_is_seen_in_the_container(notebook: Kubectl) -> None:
    shown = notebook("exec", "deploy/tf-notebook", "--", "nvidia-smi", "-L")
    assert re.fullmatch(r"GPU 0: Tesla M40 \(UUID: GPU-[-0-9a-f]{36}\)\n", shown)
    assert "12209MiB" in notebook("exec", "deploy/tf-notebook", "--", "nvidia-smi")
    node = notebook.field(".items[0].spec.nodeName", "po", "-l", "app=tf-notebook")
    assert node in M40_NODES
    described = notebook("describe", "node", node)
    assert re.search(r"^  nvidia.com/gpu\s+1\s+1$", described, re.MULTILINE)


def test_files_go_in_and_out(notebook: Kubectl) -> None:
    (notebook.folder / "data.txt").write_text("for the notebook")
    name = notebook.names("po", "-l", "app=tf-notebook")[0]
    notebook("cp", "data.txt", f"{name}:/tmp/data.txt")
    notebook("cp", f"{name}:/tmp/data.txt", "back.txt")
    assert (notebook.folder / "back.txt").read_text() == "for the notebook"


def test_the_notebook_wants_its_password_and_lists_the_gpus(notebook: Kubectl) -> None:
    assert "password of the variable PASSWORD" in notebook("logs", "deploy/tf-notebook")
    with notebook.start("port-forward", "deploy/tf-notebook", ":8888") as running:
        port = _port(running)
        assert _fetch(port, "GET", "/api/devices")[0] == 403
        assert _fetch(port, "POST", "/login", password="wrong")[0] == 401
        code, cookie, _ = _fetch(port, "POST", "/login", password=PASSWORD)
        assert code == 303
        _, _, text = _fetch(port, "GET", "/api/devices", cookie=cookie)
        found = json.loads(text)
        assert found["devices"] == ["/device:CPU:0", "/device:GPU:0"]
        assert found["gpus"] == [{"name": "Tesla M40", "memoryMiB": 12209}]
        assert "Tesla M40" in _fetch(port, "GET", "/", cookie=cookie)[2]


def _port(running: Running) -> int:
    found = re.search(r"127\.0\.0\.1:(\d+) ->", running.shows("Forwarding from 127.0.0.1:"))
    assert found
    return int(found[1])


def _fetch(
    port: int, method: str, path: str, *, cookie: str = "", password: str = ""
) -> tuple[int, str, str]:
    """Code, cookie and text of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        body = urlencode({"password": password}) if password else None
        connection.request(method, path, body, {"Cookie": cookie})
        answer = connection.getresponse()
        given = (answer.getheader("Set-Cookie") or "").partition(";")[0]
        return answer.status, given, answer.read().decode()
    finally:
        connection.close()


def test_a_new_agent_takes_over_and_pods_do_not_notice(notebook: Kubectl) -> None:
    before = notebook.json("get", "po", "-l", "app=tf-notebook")["items"][0]
    node = before["spec"]["nodeName"]
    old = agents(notebook)[node]
    notebook("delete", "po", old, "-n", "kube-system")
    eventually(lambda: agents(notebook).get(node) not in (None, old))
    eventually(lambda: gpu_resources(notebook)[node] == {"nvidia.com/gpu": "1"})
    after = notebook.json("get", "po", "-l", "app=tf-notebook")["items"][0]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


def test_pods_can_keep_away_from_gpu_nodes(kubectl: Kubectl) -> None:
    expression = {"key": "aliyun.accelerator/nvidia_name", "operator": "DoesNotExist"}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    web = container("not-in-gpu-node", "nginx")
    kubectl.apply(pod("not-in-gpu-node", web, affinity=affinity))
    kubectl.wait("condition=Ready", "pod/not-in-gpu-node")
    assert kubectl.field(".spec.nodeName", "po", "not-in-gpu-node") not in GPU_NODES


def test_a_pod_that_asks_for_no_card_sees_none(kubectl: Kubectl) -> None:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]  # which anybody can say
    look = shell('echo "driver: $LD_LIBRARY_PATH"; ls /usr/local/nvidia', env=env)
    kubectl.apply(pod("plain", look, nodeName=M40_NODES[0], restartPolicy="Never"))
    kubectl.wait("jsonpath={.status.phase}=Failed", "pod/plain")
    assert kubectl("logs", "plain").startswith("driver: \n")


def test_a_privileged_pod_may_look_at_all_cards(kubectl: Kubectl) -> None:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    look = shell("nvidia-smi -L", env=env, securityContext={"privileged": True})
    kubectl.apply(pod("monitor", look, nodeName=M40_NODES[0], restartPolicy="Never"))
    kubectl.wait("jsonpath={.status.phase}=Succeeded", "pod/monitor")
    assert "Tesla M40" in kubectl("logs", "monitor")


def test_the_samples_take_what_they_may(kubectl: Kubectl) -> None:
    sample = "example.com/tensorflow-samples/tensorflow-gpu-mem:10.0-runtime-centos7"
    command = ["python3", "/app/main.py"]
    taker = asking("cgpu-test", "aliyun.com/gpu-mem", 3, sample, command=command)
    player = asking("cgpu-test-no-isolation", "aliyun.com/gpu-mem", 3, "cheyang/gpu-player:v2")
    for given, isolated in ((taker, "false"), (player, "true")):
        selector = {"cgpu.disable.isolation": isolated}
        template = {"nodeSelector": selector, "containers": [given]}
        more = {"serviceName": given["name"], "podManagementPolicy": "Parallel"}
        kubectl.apply(labelled("StatefulSet", given["name"], template, **more))
    kubectl.wait("condition=Ready", "pod/cgpu-test-0", "pod/cgpu-test-no-isolation-0")
    assert kubectl.field(".spec.nodeName", "po", "cgpu-test-0") == ISOLATED
    assert kubectl.field(".spec.nodeName", "po", "cgpu-test-no-isolation-0") == NOT_ISOLATED
    inside = ("exec", "cgpu-test-no-isolation-0", "--")
    variables = kubectl(*inside, "env")
    assert "ALIYUN_COM_GPU_MEM_CONTAINER=3\n" in variables
    assert "ALIYUN_COM_GPU_MEM_DEV=15\n" in variables
    query = ("nvidia-smi", "--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits")
    eventually(lambda: kubectl(*inside, *query) == "3226, 16130\n")


def test_the_legacy_resource_and_its_driver_volumes_are_accepted(kubectl: Kubectl) -> None:
    mounts = [
        {"mountPath": "/usr/local/nvidia/bin", "name": "bin"},
        {"mountPath": "/usr/lib/nvidia", "name": "lib"},
    ]
    volumes = [
        {"name": "bin", "hostPath": {"path": "/usr/lib/nvidia-375/bin"}},
        {"name": "lib", "hostPath": {"path": "/usr/lib/nvidia-375"}},
    ]
    pause = "k8s.gcr.io/pause:2.0"
    legacy = asking("a", "alpha.kubernetes.io/nvidia-gpu", 1, pause, volumeMounts=mounts)
    kubectl.apply(pod("legacy", legacy, volumes=volumes))
    kubectl.wait("condition=Ready", "pod/legacy")
    assert "Tesla M40" in kubectl("exec", "legacy", "--", "nvidia-smi", "-L")
    kubectl("delete", "pod", "legacy", "--now")


def test_more_cards_than_there_are_wait_with_a_reason(kubectl: Kubectl) -> None:
    pause = "k8s.gcr.io/pause:2.0"
    asked = [asking(f"c{n}", "alpha.kubernetes.io/nvidia-gpu", n, pause) for n in (2, 3)]
    kubectl.apply(pod("gpu-pod", *asked))
    kubectl.wait("condition=PodScheduled=False", "pod/gpu-pod")
    text = kubectl.field(".status.conditions[0].message", "po", "gpu-pod")
    assert "0/8 nodes are available" in text
    assert "Insufficient nvidia.com/gpu" in text
    kubectl("delete", "pod", "gpu-pod", "--now")


def test_kubectl_warns_of_names_that_are_nearly_ours(kubectl: Kubectl) -> None:
    template = {"containers": [asking("c", "nvidia.com/gpus", 1, "pause")]}
    made = json.dumps(labelled("Deployment", "misspelt", template))
    created = kubectl.run("apply", "-f", "-", stdin=made)
    assert created.code == 0
    assert "did you mean nvidia.com/gpu?" in created.err
    assert created.err.count("Warning") == 1
    kubectl("delete", "deployment", "misspelt")


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_kubectl_warns_of_a_workload_whose_pods_will_be_refused(
    kubectl: Kubectl, kind: str
) -> None:
    spec = {"containers": [asking("c", "aliyun.com/gpu-mem", "3Gi", "pause")]}
    made = labelled("Deployment", "refused", spec)
    if kind == "CronJob":
        job = {"spec": {"template": {"spec": {**spec, "restartPolicy": "Never"}}}}
        made = {
            "apiVersion": "batch/v1",
            "kind": kind,
            "metadata": {"name": "refused"},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": job},
        }
    created = kubectl.run("apply", "-f", "-", stdin=json.dumps(made))
    assert created.code == 0
    assert "Warning: its pods will be refused: spec.containers[0]" in created.err
    kubectl("delete", kind.lower(), "refused")
