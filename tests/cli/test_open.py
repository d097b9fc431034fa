"""`gpupool open`: the address of a service, or how else to reach it."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from gpupool.cli.main import gpupool
from gpupool.cli.open import latest_message
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.kubectl import eventually

# Without node ports, by which a service that waits would be reached.
BEYOND = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "beyond"},
    "spec": {
        "type": "LoadBalancer",
        "allocateLoadBalancerNodePorts": False,
        "ports": [{"port": 80}],
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUPOOL_QUOTA_LOAD_BALANCERS", "2")  # the cluster itself takes two
        with Cluster(pools=[]) as running:
            for name, kind in (("outside", "nodeport"), ("inside", "clusterip")):
                running.kubectl("create", "service", kind, name, "--tcp=80")
            yield running


def opened(cluster: Cluster, *arguments: str) -> Result:
    given = ["open", *arguments, "--no-browser", "--kubeconfig", str(cluster.kubeconfig)]
    return CliRunner().invoke(gpupool, given, catch_exceptions=False)


@pytest.mark.kubectl
def test_the_address_is_printed(cluster: Cluster) -> None:
    port = cluster.kubectl("get", "service", "outside", "-o", "jsonpath={.spec.ports[0].nodePort}")
    assert opened(cluster, "outside").output == f"http://127.0.0.1:{port}\n"


@pytest.mark.kubectl
def test_a_service_without_an_address_says_how_to_reach_it(cluster: Cluster) -> None:
    result = opened(cluster, "inside")
    assert result.exit_code == 1
    assert "kubectl port-forward -n default service/inside 8080:80" in result.output


@pytest.mark.kubectl
def test_a_service_beyond_the_quota_says_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpupool.cli.open._SOON_S", 0.0)
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(BEYOND))
    try:
        eventually(lambda: "SyncLoadBalancerFailed" in cluster.kubectl("get", "events"))
        result = opened(cluster, "beyond")
        assert result.exit_code == 1, result.output
        assert "Service default/beyond waits for an address: quota load-balancers is 2" in (
            result.output
        )
        assert "Raise it with: gpupool quota set load-balancers=3" in result.output
        assert "kubectl port-forward -n default service/beyond 8080:80" in result.output
    finally:
        cluster.kubectl("delete", "service", "beyond")


def test_of_several_reasons_the_latest_counts() -> None:
    made = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    events: list[Obj] = [
        {"metadata": made, "lastTimestamp": "2026-01-01T00:00:09Z", "message": "quota is 5\x1b[2J"},
        {"metadata": made, "eventTime": "2026-01-01T00:00:05.000000Z", "message": "quota is 4"},
        {"metadata": made, "lastTimestamp": None},
    ]
    assert latest_message(events) == "quota is 5\ufffd[2J"
    assert latest_message([]) == ""


@pytest.mark.kubectl
def test_a_workload_without_a_service_says_how_to_reach_it(cluster: Cluster) -> None:
    cluster.kubectl("create", "deployment", "lab", "--image=pause", "--port=8888")
    result = opened(cluster, "lab")
    assert result.exit_code == 1
    assert 'There is no service "lab" in namespace default.' in result.output
    assert "kubectl port-forward -n default deployment/lab 8888 (http://localhost:8888)" in (
        result.output
    )


@pytest.mark.kubectl
def test_an_unknown_service_lists_the_others(cluster: Cluster) -> None:
    result = opened(cluster, "nothing")
    assert result.exit_code == 1
    assert "Services there: inside, kubernetes, outside." in result.output
