"""`gpupool doctor` on a local cluster, healthy and broken."""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.testing import Cluster
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

POOLS = [
    {"name": "gpu", "instanceType": "ecs.gn4-c4g1.xlarge", "count": 1},
]
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        eventually(lambda: "offers 1 of 1 card whole" in doctor(running)[1], within_s=60)
        yield running


def doctor(cluster: Cluster) -> tuple[int, str]:
    done = CliRunner().invoke(gpupool, ["doctor", "--kubeconfig", str(cluster.kubeconfig)])
    return done.exit_code, done.output


def test_a_local_cluster_has_no_problems(cluster: Cluster) -> None:
    code, said = doctor(cluster)
    assert "WRONG" not in said
    assert code == 0
    assert "GPU pods are wired to their allocation" in said


def test_a_deleted_webhook_is_found(cluster: Cluster) -> None:
    """Also finds pods that were created meanwhile."""
    _, kept = call(cluster, "GET", f"{WEBHOOKS}/gpupool-admission")
    call(cluster, "DELETE", f"{WEBHOOKS}/gpupool-admission")
    _, nodes = call(cluster, "GET", "/api/v1/nodes")
    container = {"name": "c", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    stray = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stray"},
        "spec": {"nodeName": nodes["items"][0]["metadata"]["name"], "containers": [container]},
    }
    call(cluster, "POST", "/api/v1/namespaces/default/pods", stray)
    code, said = doctor(cluster)
    assert code == 1
    assert "A webhook configuration gpupool-admission is missing" in said
    assert "GPU pods miss admission" in said
    assert "Pod default/stray came to its node without an allocation" in said
    call(cluster, "DELETE", "/api/v1/namespaces/default/pods/stray?gracePeriodSeconds=0")
    kept["metadata"] = {"name": "gpupool-admission"}
    call(cluster, "POST", WEBHOOKS, kept)
    eventually(lambda: doctor(cluster)[0] == 0, within_s=60)


def test_a_missing_role_is_found(cluster: Cluster) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    _, kept = call(cluster, "GET", f"{path}/gpupool:agent")
    call(cluster, "DELETE", f"{path}/gpupool:agent")
    code, said = doctor(cluster)
    kept["metadata"] = {"name": "gpupool:agent"}
    call(cluster, "POST", path, kept)
    assert code == 1
    assert "gpupool-agent may not patch nodes/status" in said
    assert "helm upgrade" in said
