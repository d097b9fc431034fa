"""A container that starts again while cards do not get in fails in words, and runs when they do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from testbed.find_kubectl import ensure_kubectl
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Kubectl, eventually

pytestmark = [pytest.mark.clients, pytest.mark.kubectl]

# Ends when somebody says so, once for each file.
ONCE = "rm -f /tmp/end; until [ -e /tmp/end ]; do sleep 0.1; done"


def pod() -> Obj:
    limits = {"limits": {"aliyun.com/gpu-mem": 3}}
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", ONCE]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "again"},
        "spec": {"containers": [{**container, "resources": limits}]},
    }


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    program = ensure_kubectl()
    if program is None:
        pytest.skip("NO KUBECTL: containers that start again were not tried.")
    with Cluster(config={"pools": list(SHARED_POOLS)}) as cluster:
        here: Path = tmp_path_factory.mktemp("kubectl")
        yield Kubectl(program, cluster.kubeconfig, here, "default")


def test_a_container_does_not_start_again_without_its_card(kubectl: Kubectl) -> None:
    kubectl.apply(pod())
    kubectl.wait("condition=Ready", "pod/again", within_s=120)
    node = kubectl.field(".spec.nodeName", "pod", "again")

    def status(path: str) -> str:
        return kubectl.field(f".status.containerStatuses[0].{path}", "pod", "again")

    kubectl("label", "node", node, "gpupool.io/pinned-way=mounts")  # there are none
    eventually(lambda: "pinned to mounts" in kubectl("describe", "node", node), 60)
    assert status("ready") == "true"  # what runs is left alone
    kubectl("exec", "again", "--", "touch", "/tmp/end")
    eventually(lambda: "cards do not get into containers" in status("state.waiting.message"), 60)
    words = status("state.waiting.message")
    assert f"node {node}: cards do not get into containers by" in words
    assert "the way is pinned to mounts" in words
    assert status("ready") == "false"
    kubectl("label", "node", node, "gpupool.io/pinned-way-")
    eventually(lambda: status("ready") == "true", 120)
    assert status("restartCount") != "0"
