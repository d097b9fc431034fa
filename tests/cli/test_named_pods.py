"""A pod that is not there: who named its workload, or mistyped, is told which pods there are."""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.testing import Cluster
from tests.e2e.api import call
from tests.e2e.objects import container, template, workload

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pools = [{"name": "plain", "count": 1, "instanceType": "ecs.g6.xlarge"}]
    with Cluster(pools=pools) as running:
        spec = {"template": template(container("c", "pause"))}
        call(running, "POST", DEPLOYMENTS, workload("Deployment", "empty", 0, **spec))
        for name in ("web-0", "web-1"):
            pod = {"metadata": {"name": name}, "spec": {"containers": [container("c", "pause")]}}
            assert call(running, "POST", PODS, pod)[0] == 201
        yield running


def answer(cluster: Cluster, *arguments: str) -> str:
    line = [*arguments, "--kubeconfig", str(cluster.kubeconfig)]
    result = CliRunner().invoke(gpupool, line, catch_exceptions=False)
    assert result.exit_code == 1
    return result.output


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("web", 'pods "web" not found. Pods whose names begin so: default/web-0, default/web-1.'),
        ("deployment/web", "names a Deployment, wanted a pod. Pods whose names begin so: default/"),
        ("wbe-0", 'pods "wbe-0" not found. Did you mean default/web-0?'),
        ("empty", "There is a Deployment of that name, which has no pods. What it says: kubectl "),
        ("other", 'pods "other" not found. See which there are: kubectl get pods -A'),
        ("nowhere/web-0", 'There is no namespace "nowhere".'),
    ],
)
def test_a_pod_that_is_not_there_is_answered_with_what_was_meant(
    cluster: Cluster, named: str, words: str
) -> None:
    assert words in answer(cluster, "explain", named)
    assert words in answer(cluster, "resize", named, "--gpu-mem", "1")
