"""The official Python client, whose models check every answer."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from gpupool.testing import Cluster
from tests.e2e.kubectl import eventually
from tests.e2e.objects import budget, config_map, container, deployment, pod, shell

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # theirs
]


@pytest.fixture(scope="module")
def library() -> Any:
    """Imported late: it takes seconds."""
    pytest.importorskip("kubernetes")
    import kubernetes
    import kubernetes.dynamic
    import kubernetes.stream
    import kubernetes.utils
    import kubernetes.watch

    return kubernetes


@pytest.fixture(scope="module")
def connection(library: Any, cluster: Cluster) -> Iterator[Any]:
    with library.config.new_client_from_config(str(cluster.kubeconfig)) as made:
        yield made


@pytest.fixture
def core(library: Any, connection: Any) -> Any:
    return library.client.CoreV1Api(connection)


@pytest.fixture
def apps(library: Any, connection: Any) -> Any:
    return library.client.AppsV1Api(connection)


def running(core: Any, namespace: str, name: str) -> None:
    eventually(lambda: core.read_namespaced_pod(name, namespace).status.phase == "Running")


def test_objects_are_made_read_replaced_and_deleted(
    library: Any, core: Any, namespace: str
) -> None:
    client = library.client
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"a": "1"})
    made = core.create_namespaced_config_map(namespace, body)
    assert made.metadata.uid
    made.data = {"b": "2"}
    core.replace_namespaced_config_map("c", namespace, made)
    assert core.read_namespaced_config_map("c", namespace).data == {"b": "2"}
    core.delete_namespaced_config_map("c", namespace)
    with pytest.raises(client.exceptions.ApiException) as refused:
        core.read_namespaced_config_map("c", namespace)
    assert refused.value.status == 404
    assert json.loads(refused.value.body)["reason"] == "NotFound"


def test_refusals_carry_the_status(library: Any, core: Any, namespace: str) -> None:
    refusal = library.client.exceptions.ApiException
    core.create_namespaced_config_map(namespace, config_map("c"))
    with pytest.raises(refusal) as again:
        core.create_namespaced_config_map(namespace, config_map("c"))
    assert (again.value.status, again.value.reason) == (409, "Conflict")
    with pytest.raises(refusal) as bad:
        core.create_namespaced_config_map(namespace, config_map("Bad_Name"))
    assert bad.value.status == 422


def test_the_types_of_patch(core: Any, apps: Any, namespace: str) -> None:
    apps.create_namespaced_deployment(namespace, deployment("web"))
    change = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "b"}]}}}}
    patched = apps.patch_namespaced_deployment("web", namespace, change)
    assert patched.spec.template.spec.containers[0].image == "b"
    steps = [{"op": "replace", "path": "/spec/replicas", "value": 2}]
    assert apps.patch_namespaced_deployment("web", namespace, steps).spec.replicas == 2
    applied = core.patch_namespaced_config_map(
        "c",
        namespace,
        {"apiVersion": "v1", **config_map("c", a="1")},
        field_manager="tester",
        _content_type="application/apply-patch+yaml",
    )
    assert applied.metadata.managed_fields[0].manager == "tester"


def test_lists_are_selected_and_paged(core: Any, namespace: str) -> None:
    for number in range(5):
        labels = {"odd": str(number % 2)}
        core.create_namespaced_config_map(namespace, config_map(f"c{number}", labels))
    odd = core.list_namespaced_config_map(namespace, label_selector="odd=1")
    assert [item.metadata.name for item in odd.items] == ["c1", "c3"]
    first = core.list_namespaced_config_map(namespace, limit=4)
    assert first.metadata.remaining_item_count == 2
    rest = core.list_namespaced_config_map(namespace, limit=4, _continue=first.metadata._continue)
    assert len(first.items) + len(rest.items) == 6


def test_nodes_and_everything_else_fit_the_models(library: Any, connection: Any, core: Any) -> None:
    client = library.client
    nodes = core.list_node().items
    assert len(nodes) == 4
    assert nodes[0].status.node_info.kubelet_version.startswith("v1.35")
    assert client.VersionApi(connection).get_code().major == "1"
    assert client.CoordinationV1Api(connection).list_namespaced_lease("kube-node-lease").items
    assert client.RbacAuthorizationV1Api(connection).list_cluster_role().items
    assert client.ApiextensionsV1Api(connection).list_custom_resource_definition().items
    assert client.StorageV1Api(connection).list_storage_class().items
    assert client.DiscoveryV1Api(connection).list_endpoint_slice_for_all_namespaces().items
    assert core.list_event_for_all_namespaces().items
    assert client.ApisApi(connection).get_api_versions().groups


def test_a_watch_sees_everything_in_order(library: Any, core: Any, namespace: str) -> None:
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("c"))
    core.patch_namespaced_config_map("c", namespace, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("c", namespace)
    watch, seen = library.watch.Watch(), []
    call = core.list_namespaced_config_map
    for event in watch.stream(call, namespace, resource_version=version, timeout_seconds=10):
        if event["object"].metadata.name == "c":
            seen.append(event["type"])
        if event["type"] == "DELETED":
            watch.stop()
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


def test_logs_are_read_and_followed(library: Any, core: Any, namespace: str) -> None:
    script = "for i in 1 2 3; do echo line $i; done"
    core.create_namespaced_pod(namespace, pod("web", shell(script), restartPolicy="Never"))
    eventually(lambda: core.read_namespaced_pod("web", namespace).status.phase == "Succeeded")
    assert core.read_namespaced_pod_log("web", namespace) == "line 1\nline 2\nline 3\n"
    assert core.read_namespaced_pod_log("web", namespace, tail_lines=1) == "line 3\n"
    followed = library.watch.Watch().stream(core.read_namespaced_pod_log, "web", namespace)
    assert list(followed) == ["line 1", "line 2", "line 3"]


def test_exec_runs_a_program(library: Any, core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("box", shell("sleep 1000")))
    running(core, namespace, "box")
    call, flags = core.connect_get_namespaced_pod_exec, {"stdout": True, "stderr": True}
    out = library.stream.stream(call, "box", namespace, command=["echo", "hi"], **flags)
    assert out == "hi\n"
    session = library.stream.stream(
        call,
        "box",
        namespace,
        command=["sh", "-c", "read x; echo got $x; exit 3"],
        stdin=True,
        _preload_content=False,
        **flags,
    )
    session.write_stdin("this\n")
    session.run_forever(timeout=10)
    assert session.read_stdout() == "got this\n"
    assert session.returncode == 3


def test_a_port_is_forwarded(library: Any, core: Any, namespace: str) -> None:
    web = pod("web", container(ports=[{"containerPort": 80}]))
    core.create_namespaced_pod(namespace, web)
    running(core, namespace, "web")
    call = core.connect_get_namespaced_pod_portforward
    forward = library.stream.portforward(call, "web", namespace, ports="80")
    connection: socket.socket = forward.socket(80)
    connection.settimeout(10)
    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
    answer = b""
    while chunk := connection.recv(4096):
        answer += chunk
    connection.close()
    assert answer.startswith(b"HTTP/1.0 200")
    assert forward.error(80) is None


def test_a_scheduler_binds(library: Any, core: Any, namespace: str) -> None:
    client = library.client
    core.create_namespaced_pod(namespace, pod("web", schedulerName="tester"))
    node = core.list_node(label_selector="disk=ssd").items[0].metadata.name
    binding = client.V1Binding(
        metadata=client.V1ObjectMeta(name="web"),
        target=client.V1ObjectReference(api_version="v1", kind="Node", name=node),
    )
    core.create_namespaced_pod_binding("web", namespace, binding, _preload_content=False)
    running(core, namespace, "web")
    assert core.read_namespaced_pod("web", namespace).spec.node_name == node


def test_an_eviction_minds_the_budget(
    library: Any, connection: Any, core: Any, namespace: str
) -> None:
    client = library.client
    core.create_namespaced_pod(namespace, pod("web", shell("sleep 1000")))
    policies = client.PolicyV1Api(connection)
    policies.create_namespaced_pod_disruption_budget(namespace, budget("web", minAvailable=1))
    running(core, namespace, "web")

    def healthy() -> bool:
        read = policies.read_namespaced_pod_disruption_budget
        status = read("web", namespace).status
        return bool(status and status.current_healthy == 1)

    eventually(healthy)
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="web"))
    with pytest.raises(client.exceptions.ApiException) as refused:
        core.create_namespaced_pod_eviction("web", namespace, eviction)
    assert refused.value.status == 429
    policies.delete_namespaced_pod_disruption_budget("web", namespace)
    core.create_namespaced_pod_eviction("web", namespace, eviction)
    assert core.read_namespaced_pod("web", namespace).metadata.deletion_timestamp


def test_scaling_by_the_subresource(apps: Any, namespace: str) -> None:
    apps.create_namespaced_deployment(namespace, deployment("web"))
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 2}})
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
    eventually(
        lambda: apps.read_namespaced_deployment_status("web", namespace).status.ready_replicas == 2
    )


def test_the_dynamic_client(library: Any, connection: Any, namespace: str) -> None:
    dynamic = library.dynamic.DynamicClient(connection)
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body=config_map("c", a="1"), namespace=namespace)
    assert maps.get(name="c", namespace=namespace).data.a == "1"
    body = {"apiVersion": "v1", **config_map("c", b="2")}
    maps.server_side_apply(body=body, namespace=namespace, field_manager="tester")
    assert maps.get(name="c", namespace=namespace).data.to_dict() == {"a": "1", "b": "2"}
    events = maps.watch(namespace=namespace, timeout=1)
    assert {event["type"] for event in events} == {"ADDED"}
    maps.delete(name="c", namespace=namespace)
    pools = dynamic.resources.get(api_version="gpupool.io/v1alpha1", kind="NodePool")
    assert "workers" in [pool.metadata.name for pool in pools.get().items]


def test_custom_objects(library: Any, connection: Any) -> None:
    custom = library.client.CustomObjectsApi(connection)
    found = custom.get_cluster_custom_object("gpupool.io", "v1alpha1", "nodepools", "workers")
    assert found["spec"]["instanceType"] == "ecs.g6.8xlarge"


def test_objects_of_a_document_are_made(
    library: Any, connection: Any, core: Any, namespace: str
) -> None:
    both = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    library.utils.create_from_dict(connection, both, namespace=namespace)
    assert core.read_namespaced_config_map("b", namespace)
