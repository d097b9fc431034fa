"""`gpupool open`: the address of a service, or how else to reach it."""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from gpupool.cli.main import gpupool
from gpupool.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
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
