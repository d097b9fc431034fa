"""lightkube: typed resources, apply, scale, wait and logs."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gpupool.testing import Cluster
from tests.e2e.kubectl import eventually
from tests.e2e.objects import config_map, deployment, pod, shell

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # theirs
]


@pytest.fixture(scope="module")
def library() -> Any:
    pytest.importorskip("lightkube")
    import lightkube
    import lightkube.codecs
    import lightkube.core.exceptions
    import lightkube.generic_resource
    import lightkube.resources.apps_v1
    import lightkube.resources.core_v1
    import lightkube.types

    return lightkube


@pytest.fixture
def client(library: Any, cluster: Cluster, namespace: str) -> Iterator[Any]:
    config = library.KubeConfig.from_file(str(cluster.kubeconfig))
    made = library.Client(config=config, namespace=namespace, field_manager="lightkube-test")
    yield made
    made.close()


@pytest.fixture
def core(library: Any) -> Any:
    return library.resources.core_v1


@pytest.fixture
def apps(library: Any) -> Any:
    return library.resources.apps_v1


def test_objects_are_made_read_replaced_and_deleted(client: Any, core: Any, library: Any) -> None:
    client.create(core.ConfigMap.from_dict(config_map("c", a="1")))
    found = client.get(core.ConfigMap, "c")
    found.data["a"] = "2"
    client.replace(found)
    assert client.get(core.ConfigMap, "c").data == {"a": "2"}
    client.patch(core.ConfigMap, "c", {"metadata": {"labels": {"x": "y"}}})
    assert [item.metadata.name for item in client.list(core.ConfigMap, labels={"x": "y"})] == ["c"]
    client.delete(core.ConfigMap, "c")
    with pytest.raises(library.core.exceptions.ApiError) as refused:
        client.get(core.ConfigMap, "c")
    assert refused.value.status.reason == "NotFound"


def test_apply_owns_and_disputes(client: Any, core: Any, library: Any, namespace: str) -> None:
    def made(value: str) -> Any:
        obj = config_map("c", a=value)
        obj["metadata"]["namespace"] = namespace
        return core.ConfigMap.from_dict(obj)

    client.apply(made("1"))
    client.apply(made("2"))
    with pytest.raises(library.core.exceptions.ApiError) as refused:
        client.apply(made("3"), field_manager="other")
    assert refused.value.status.code == 409
    client.apply(made("3"), field_manager="other", force=True)
    assert client.get(core.ConfigMap, "c").data == {"a": "3"}


def test_a_deployment_is_awaited_and_scaled(client: Any, apps: Any) -> None:
    client.create(apps.Deployment.from_dict(deployment("web")))
    client.wait(apps.Deployment, "web", for_conditions=["Available"])
    scale = client.get(apps.Deployment.Scale, "web")
    scale.spec.replicas = 2
    client.replace(scale, "web")
    eventually(lambda: client.get(apps.Deployment, "web").status.readyReplicas == 2)
    client.patch(apps.Deployment.Scale, "web", {"spec": {"replicas": 1}})
    assert client.get(apps.Deployment, "web").spec.replicas == 1


def test_a_watch_sees_what_happens(client: Any, core: Any) -> None:
    before = client.list(core.ConfigMap)
    list(before)
    client.create(core.ConfigMap.from_dict(config_map("c")))
    client.delete(core.ConfigMap, "c")
    seen: list[str] = []
    watching: Iterator[Any] = client.watch(core.ConfigMap, resource_version=before.resourceVersion)
    for kind, obj in watching:
        if obj.metadata.name == "c":
            seen.append(kind)
        if kind == "DELETED":
            break
    assert seen == ["ADDED", "DELETED"]


def test_logs_are_followed(client: Any, core: Any) -> None:
    made = pod("web", shell("echo one; echo two"), restartPolicy="Never")
    client.create(core.Pod.from_dict(made))
    eventually(lambda: client.get(core.Pod, "web").status.phase == "Succeeded")
    assert [line.strip() for line in client.log("web", follow=True)] == ["one", "two"]


def test_custom_kinds_are_generic(client: Any, library: Any) -> None:
    pools = library.generic_resource.create_global_resource(
        "gpupool.io", "v1alpha1", "NodePool", "nodepools"
    )
    assert client.get(pools, "workers")["spec"]["instanceType"] == "ecs.g6.8xlarge"
    library.generic_resource.load_in_cluster_generic_resources(client)


def test_a_long_list_comes_in_chunks(client: Any, core: Any) -> None:
    for number in range(5):
        client.create(core.ConfigMap.from_dict(config_map(f"c{number}")))
    assert len(list(client.list(core.ConfigMap, chunk_size=2))) == 6


def test_exec_runs_a_program(client: Any, core: Any) -> None:
    client.create(core.Pod.from_dict(pod("box", shell("sleep 1000"))))
    client.wait(core.Pod, "box", for_conditions=["Ready"])
    done = client.exec(
        "box", command=["sh", "-c", "cat; echo err >&2"], stdin="hi", stdout=True, stderr=True
    )
    assert (done.stdout, done.stderr, done.exit_code) == ("hi", "err\n", 0)
    _readers_ended()
    assert client.exec("box", command=["sh", "-c", "exit 3"]).exit_code == 3
    _readers_ended()


def _readers_ended() -> None:
    """Its library closes a connection while a thread of its own still reads from it. That thread
    would take the first bytes of the next connection, which gets the same file descriptor."""
    eventually(lambda: not any("Executor" in each.name for each in threading.enumerate()))
