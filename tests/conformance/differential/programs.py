"""Python programs: what the official client is made to do on both servers, call by call.

What a call gives, or the refusal that it raises, is what is compared.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Client:
    library: Any
    connection: Any
    namespace: str

    @property
    def core(self) -> Any:
        return self.library.client.CoreV1Api(self.connection)

    @property
    def apps(self) -> Any:
        return self.library.client.AppsV1Api(self.connection)

    @property
    def batch(self) -> Any:
        return self.library.client.BatchV1Api(self.connection)

    @property
    def custom(self) -> Any:
        return self.library.client.CustomObjectsApi(self.connection)

    def dynamic(self, version: str, kind: str) -> Any:
        found = self.library.dynamic.DynamicClient(self.connection)
        return found.resources.get(api_version=version, kind=kind)

    def events(self, listing: Any, **options: Any) -> dict[str, Any]:
        watch = self.library.watch.Watch()
        stream = watch.stream(listing, self.namespace, timeout_seconds=1, **options)
        return {"events": [[each["type"], each["raw_object"]] for each in stream]}


Call = Callable[[Client], Any]


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    calls: Mapping[str, Call]

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(self.calls)


@contextmanager
def connected(kubeconfig: Path, namespace: str) -> Iterator[Client]:
    import kubernetes  # late: it takes seconds
    import kubernetes.dynamic
    import kubernetes.watch

    with kubernetes.config.new_client_from_config(str(kubeconfig)) as connection:
        yield Client(kubernetes, connection, namespace)


def answer(client: Client, call: Call) -> str:
    """As JSON, whatever came of it."""
    refusal = client.library.client.exceptions.ApiException
    try:
        given = call(client)
    except refusal as error:
        given = {"refused": error.status, "reason": error.reason, "body": _parsed(error.body)}
    if hasattr(given, "to_dict") and hasattr(given, "attributes"):  # the dynamic client's
        given = given.to_dict()
    return json.dumps(client.connection.sanitize_for_serialization(given))


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def _map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def _deployment(name: str, replicas: int = 0) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}]},
    }
    selector = {"matchLabels": {"app": name}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


_POD = {"metadata": {"name": "p"}, "spec": {"schedulerName": "nobody", "containers": []}}
_CONTAINER = {"name": "c", "image": "busybox:1"}
_OBJECTS: Mapping[str, Call] = {
    "create": lambda c: c.core.create_namespaced_config_map(c.namespace, _map("a", k="1")),
    "create again": lambda c: c.core.create_namespaced_config_map(c.namespace, _map("a")),
    "create without a name": lambda c: c.core.create_namespaced_config_map(c.namespace, {}),
    "create with a bad name": lambda c: c.core.create_namespaced_config_map(
        c.namespace, _map("A_b")
    ),
    "create, dry": lambda c: c.core.create_namespaced_config_map(
        c.namespace, _map("dry"), dry_run="All"
    ),
    "create in a missing namespace": lambda c: c.core.create_namespaced_config_map(
        "missing", _map("a")
    ),
    "read": lambda c: c.core.read_namespaced_config_map("a", c.namespace),
    "read what is missing": lambda c: c.core.read_namespaced_config_map("x", c.namespace),
    "patch": lambda c: c.core.patch_namespaced_config_map("a", c.namespace, _map("a", k="2")),
    "patch by JSON patch": lambda c: c.core.patch_namespaced_config_map(
        "a", c.namespace, [{"op": "add", "path": "/data/l", "value": "3"}]
    ),
    "replace": lambda c: c.core.replace_namespaced_config_map("a", c.namespace, _map("a", z="9")),
    "replace another name": lambda c: c.core.replace_namespaced_config_map(
        "a", c.namespace, _map("b")
    ),
    "replace an old version": lambda c: c.core.replace_namespaced_config_map(
        "a", c.namespace, {"metadata": {"name": "a", "resourceVersion": "1"}}
    ),
    "list": lambda c: c.core.list_namespaced_config_map(
        c.namespace, field_selector="metadata.name=a"
    ),
    "list by a bad selector": lambda c: c.core.list_namespaced_config_map(
        c.namespace, label_selector="a b"
    ),
    "list a page": lambda c: c.core.list_namespaced_config_map(c.namespace, limit=1).items[0].data,
    "watch": lambda c: c.events(
        c.core.list_namespaced_config_map, field_selector="metadata.name=a"
    ),
    "delete": lambda c: c.core.delete_namespaced_config_map("a", c.namespace),
    "delete again": lambda c: c.core.delete_namespaced_config_map("a", c.namespace),
    "delete a collection": lambda c: c.core.delete_collection_namespaced_config_map(
        c.namespace, label_selector="none=such"
    ),
    "version": lambda c: c.library.client.VersionApi(c.connection).get_code().minor,
}
_WORKLOADS: Mapping[str, Call] = {
    "create a deployment": lambda c: c.apps.create_namespaced_deployment(
        c.namespace, _deployment("d")
    ),
    "read its scale": lambda c: c.apps.read_namespaced_deployment_scale("d", c.namespace),
    "refuse its selector": lambda c: c.apps.patch_namespaced_deployment(
        "d", c.namespace, {"spec": {"selector": {"matchLabels": {"x": "y"}}}}
    ),
    "create a pod without containers": lambda c: c.core.create_namespaced_pod(c.namespace, _POD),
    "create a pod": lambda c: c.core.create_namespaced_pod(
        c.namespace, {**_POD, "spec": {"schedulerName": "nobody", "containers": [_CONTAINER]}}
    ),
    "read its log": lambda c: c.core.read_namespaced_pod_log("p", c.namespace),
    "write its status": lambda c: c.core.patch_namespaced_pod_status(
        "p", c.namespace, {"status": {"phase": "Running"}}
    ),
    "create a node": lambda c: c.core.create_node({"metadata": {"name": "c-python"}}).spec,
    "bind it to the node": lambda c: (
        c.core.create_namespaced_pod_binding(
            "p",
            c.namespace,
            {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "c-python"}},
            _preload_content=False,
        ).status
    ),
    "bind it again": lambda c: c.core.create_namespaced_pod_binding(
        "p",
        c.namespace,
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "elsewhere"}},
    ),
    "evict it": lambda c: (
        c.core.create_namespaced_pod_eviction(
            "p", c.namespace, {"metadata": {"name": "p"}}, _preload_content=False
        ).status
    ),
    "delete it": lambda c: c.core.delete_namespaced_pod("p", c.namespace, grace_period_seconds=0),
    "delete the node": lambda c: c.core.delete_node("c-python"),
    "create a job": lambda c: (
        c.batch.create_namespaced_job(
            c.namespace,
            {
                "metadata": {"name": "j"},
                "spec": {
                    "suspend": True,
                    "template": {"spec": {"restartPolicy": "Never", "containers": [_CONTAINER]}},
                },
            },
        ).spec
    ),
    "ask for missing custom objects": lambda c: c.custom.list_namespaced_custom_object(
        "example.com", "v1", c.namespace, "things"
    ),
    "apply by the dynamic client": lambda c: c.dynamic("v1", "ConfigMap").server_side_apply(
        body={"apiVersion": "v1", "kind": "ConfigMap", **_map("dynamic", k="1")},
        namespace=c.namespace,
        field_manager="one",
    ),
    "apply against another manager": lambda c: c.dynamic("v1", "ConfigMap").server_side_apply(
        body={"apiVersion": "v1", "kind": "ConfigMap", **_map("dynamic", k="2")},
        namespace=c.namespace,
        field_manager="two",
    ),
    "get by the dynamic client": lambda c: c.dynamic("apps/v1", "Deployment").get(
        name="missing", namespace=c.namespace
    ),
}
PROGRAMS = (Program("python-objects", _OBJECTS), Program("python-workloads", _WORKLOADS))
