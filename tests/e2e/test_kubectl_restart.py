"""A cluster that stops, or is killed, and comes back: what kubectl sees."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.local.config.settings import NAMES
from gpupool.testing import Cluster
from tests.e2e.api import ready_nodes
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import config_map, deployment, pod, shell

pytestmark = pytest.mark.kubectl


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=[{"name": "workers", "instanceType": "ecs.g6.xlarge"}]) as running:
        eventually(lambda: len(ready_nodes(running)) == 1)
        yield running


@pytest.fixture
def kubectl(cluster: Cluster, kubectl_program: Path, tmp_path: Path) -> Kubectl:
    return Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)


def test_nothing_is_lost_when_it_is_killed(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl("annotate", "namespace", "default", f"{NAMES.runtime_annotation}=timer")
    kubectl.apply(config_map("c", a="1"), deployment("web", 2))
    kubectl("rollout", "status", "deployment/web")
    before = kubectl.names("pods")
    version = kubectl.json("get", "configmaps")["items"][0]["metadata"]["resourceVersion"]
    cluster.kill()
    cluster.start()
    assert kubectl.field(".data.a", "configmap", "c") == "1"
    kubectl("rollout", "status", "deployment/web")
    assert kubectl.names("pods") == before
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("rollout", "status", "deployment/web")
    path = f"/api/v1/configmaps?watch=1&resourceVersion={version}&timeoutSeconds=2"
    event = json.loads(kubectl("get", "--raw", path).splitlines()[0])
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_processes_are_started_again(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply(pod("web", shell("echo started; sleep 1000")))
    kubectl.wait("condition=Ready", "pod/web")
    cluster.stop()
    cluster.start()
    eventually(
        lambda: kubectl.field(".status.containerStatuses[0].restartCount", "pod", "web") == "1"
    )
    kubectl.wait("condition=Ready", "pod/web", within_s=30)
    eventually(lambda: kubectl("logs", "web") == "started\n")


def test_a_watch_goes_on_after_a_restart(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c"))
    cluster.stop()
    cluster.start()
    with kubectl.start("wait", "--for=delete", "configmap/c", "--timeout=20s") as waiting:
        kubectl("delete", "configmap", "c")
        assert waiting.ends() == 0
