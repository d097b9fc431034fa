"""Nodes in the console of a local cluster: taints, draining, removing."""

import re
from collections.abc import Iterator

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.console.own_console import OwnConsole, running_console
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

POOLS = [{"name": "gpu", "instanceType": "ecs.gn6v-c8g1.2xlarge", "count": 2}]
APPS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS = "/api/v1/namespaces/default/pods"
POOL = "/apis/gpupool.io/v1alpha1/nodepools/gpu"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        yield running


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[OwnConsole]:
    with running_console(cluster.kubeconfig) as found:
        yield found


def nodes(cluster: Cluster) -> list[Obj]:
    return sorted(
        call(cluster, "GET", "/api/v1/nodes")[1]["items"], key=lambda each: each["metadata"]["name"]
    )


def name_of(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def test_taints_are_changed_and_mistakes_are_said_at_the_field(
    cluster: Cluster, console: OwnConsole
) -> None:
    name = name_of(nodes(cluster)[0])
    path = f"/nodes/{name}/taints"
    status, page = console.posts(path, taints="gpu")
    assert status == 422
    assert "wanted key=value:NoSchedule, found: gpu" in page
    assert console.posts(path, taints="gpu=yes:PreferNoSchedule")[0] == 303
    spec = call(cluster, "GET", f"/api/v1/nodes/{name}")[1]["spec"]
    assert spec["taints"] == [{"key": "gpu", "value": "yes", "effect": "PreferNoSchedule"}]
    assert "gpu=yes:PreferNoSchedule" in console.page(f"/nodes/{name}")
    assert console.posts(path, taints="")[0] == 303
    assert not call(cluster, "GET", f"/api/v1/nodes/{name}")[1]["spec"].get("taints")


def test_the_list_and_the_node_show_what_pods_have_requested(
    cluster: Cluster, console: OwnConsole
) -> None:
    assert "0 / 8 CPU</span>" in console.page("/nodes")
    page = console.page(f"/nodes/{name_of(nodes(cluster)[0])}")
    for text in ("CPU requested", "Container runtime", "Temperature", "300</span>", "GPU-"):
        assert text in page


def deployed(cluster: Cluster, name: str, node: str) -> None:
    container = {"name": "c", "image": "pause"}
    selector = {"kubernetes.io/hostname": node}
    body = {
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], "nodeSelector": selector},
            },
        },
    }
    assert call(cluster, "POST", APPS, body)[0] == 201
    eventually(lambda: running(cluster, name), within_s=120)


def running(cluster: Cluster, app: str) -> list[Obj]:
    found = call(cluster, "GET", f"{PODS}?labelSelector=app%3D{app}")[1]["items"]
    return [each for each in found if each["status"].get("phase") == "Running"]


def test_a_drain_tells_what_holds_it_back_and_goes_on_when_it_may(
    cluster: Cluster, console: OwnConsole
) -> None:
    name = name_of(nodes(cluster)[0])
    deployed(cluster, "held", name)
    budget = {
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}},
    }
    assert call(cluster, "POST", BUDGETS, budget)[0] == 201
    eventually(
        lambda: call(cluster, "GET", f"{BUDGETS}/keep")[1].get("status", {}).get("currentHealthy"),
        within_s=60,
    )
    assert "disruption budgets allow: 1." in console.page(f"/nodes/{name}/drain")
    assert console.posts(f"/nodes/{name}/drain")[0] == 303
    progress = f"/nodes/{name}/draining"
    eventually(lambda: "disruption budget" in console.page(progress), within_s=60)
    page = console.page(progress)
    assert "0 of 1 pods have left the node." in page
    assert "Progress of the drain" in console.page(f"/nodes/{name}")
    status, page = console.posts(f"/nodes/{name}/drain")
    assert (status, "being drained already" in page) == (422, True)
    assert call(cluster, "DELETE", f"{BUDGETS}/keep")[0] == 200
    eventually(lambda: "1 of 1 pods have left the node." in console.page(progress), within_s=120)
    eventually(lambda: ">Drained<" in console.page(progress), within_s=60)
    assert call(cluster, "GET", f"/api/v1/nodes/{name}")[1]["spec"]["unschedulable"]
    assert call(cluster, "DELETE", f"{APPS}/held")[0] == 200
    assert console.posts(f"/nodes/{name}/uncordon")[0] == 303


def test_a_pod_that_nobody_makes_again_needs_consent_and_a_drain_can_be_stopped(
    cluster: Cluster, console: OwnConsole
) -> None:
    name = name_of(nodes(cluster)[0])
    container = {"name": "c", "image": "pause"}
    selector = {"kubernetes.io/hostname": name}
    body = {
        "metadata": {"name": "alone"},
        "spec": {"containers": [container], "nodeSelector": selector},
    }
    assert call(cluster, "POST", PODS, body)[0] == 201
    eventually(lambda: call(cluster, "GET", f"{PODS}/alone")[1]["spec"].get("nodeName"), 60)
    status, page = console.posts(f"/nodes/{name}/drain")
    assert status == 422
    assert "Wanted your consent, because of: default/alone" in page
    assert call(cluster, "GET", f"{PODS}/alone")[0] == 200
    assert not call(cluster, "GET", f"/api/v1/nodes/{name}")[1]["spec"].get("unschedulable")
    assert console.posts(f"/nodes/{name}/drain", lost="yes")[0] == 303
    console.posts(f"/nodes/{name}/drain/stop")
    page = console.page(f"/nodes/{name}/draining")
    assert re.search(r">(Stopped|Drained)<", page)
    call(cluster, "DELETE", f"{PODS}/alone")
    assert console.posts(f"/nodes/{name}/uncordon")[0] == 303


def test_a_node_is_removed_and_its_pool_gets_smaller(cluster: Cluster, console: OwnConsole) -> None:
    name = name_of(nodes(cluster)[0])
    path = f"/nodes/{name}/remove"
    assert "Node pool gpu is to have 1 nodes then" in console.page(path)
    assert console.posts(path, drain="yes", smaller="yes")[0] == 422, "the name was not typed"
    typed = {"typed-name": name}
    assert console.posts(path, drain="yes", smaller="yes", **typed)[0] == 303
    eventually(lambda: call(cluster, "GET", f"/api/v1/nodes/{name}")[0] == 404, within_s=120)
    eventually(
        lambda: "The node is removed." in console.page(f"/nodes/{name}/draining"), within_s=60
    )
    assert call(cluster, "GET", POOL)[1]["spec"]["count"] == 1
    assert len(nodes(cluster)) == 1
    assert console.posts(path, drain="yes", **typed)[0] == 404, "it is gone"


def test_a_node_that_is_not_there_cannot_be_drained(console: OwnConsole) -> None:
    for name in ("nobody", "a,metadata.namespace=default", "%2e%2e"):
        for action in ("drain", "remove", "taints", "labels"):
            status, page, _ = console.asks("GET", f"{console.home}/nodes/{name}/{action}")
            assert status == 404
            assert "Traceback" not in page
