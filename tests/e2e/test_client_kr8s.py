"""kr8s: wait, exec, logs, port-forward, cordon."""

import urllib.request
from typing import Any

import pytest

from gpupool.testing import Cluster
from tests.e2e.kubectl import eventually
from tests.e2e.objects import config_map, container, deployment, pod, shell

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # theirs
]


@pytest.fixture(scope="module")
def library() -> Any:
    pytest.importorskip("kr8s")
    import kr8s
    import kr8s.objects

    return kr8s


@pytest.fixture
def api(library: Any, cluster: Cluster, namespace: str) -> Any:
    return library.api(kubeconfig=str(cluster.kubeconfig), namespace=namespace)


def made(library: Any, api: Any, kind: str, obj: Any) -> Any:
    """Created, and waiting for nothing."""
    thing = getattr(library.objects, kind)({**obj, "apiVersion": obj["apiVersion"]}, api=api)
    thing.create()
    return thing


def test_objects_are_made_patched_and_deleted(library: Any, api: Any) -> None:
    thing = made(library, api, "ConfigMap", config_map("c", a="1"))
    thing.patch({"data": {"b": "2"}})
    thing.label({"x": "y"})
    thing.annotate({"why": "because"})
    found = next(iter(api.get("configmaps", label_selector={"x": "y"})))
    assert dict(found.raw["data"]) == {"a": "1", "b": "2"}
    thing.delete()
    assert not thing.exists()
    with pytest.raises(library.NotFoundError):
        library.objects.ConfigMap.get("c", api=api)


def test_version_and_kinds_are_discovered(api: Any) -> None:
    assert api.version()["gitVersion"].startswith("v1.35")
    assert "nodepools" in {resource["name"] for resource in api.api_resources()}
    assert [pool.name for pool in api.get("nodepools")] == ["control", "workers"]


def test_a_pod_is_awaited_entered_and_read(library: Any, api: Any) -> None:
    box = made(library, api, "Pod", pod("box", shell("echo ready; sleep 1000")))
    box.wait("condition=Ready")
    done = box.exec(["sh", "-c", "echo hi; echo err >&2"], check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hi\n", b"err\n")
    assert box.exec(["sh", "-c", "exit 3"], check=False).returncode == 3
    eventually(lambda: list(box.logs()) == ["ready"])
    box.delete()
    box.wait("delete")


def test_a_port_is_forwarded(library: Any, api: Any) -> None:
    web = made(library, api, "Pod", pod("web", container(ports=[{"containerPort": 80}])))
    web.wait("condition=Ready")
    with web.portforward(80, local_port="auto") as port:
        address = f"http://127.0.0.1:{port}/"
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert b"nginx" in answer.read()


def test_a_deployment_is_scaled(library: Any, api: Any) -> None:
    web = made(library, api, "Deployment", deployment("web"))
    web.wait("condition=Available")
    web.scale(2)
    eventually(lambda: web.refresh() or web.raw["status"].get("readyReplicas") == 2)
    assert len(web.pods()) == 2


def test_a_node_is_cordoned_and_opened(api: Any) -> None:
    node = next(iter(api.get("nodes", label_selector={"disk": "ssd"})))
    node.cordon()
    node.refresh()
    assert node.unschedulable
    node.uncordon()
    node.refresh()
    assert not node.unschedulable


def test_a_watch_sees_what_happens(library: Any, api: Any) -> None:
    made(library, api, "ConfigMap", config_map("c"))
    for kind, obj in api.watch("configmaps"):
        if obj.name == "c":
            assert kind == "ADDED"
            break
