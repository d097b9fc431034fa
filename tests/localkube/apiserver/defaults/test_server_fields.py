"""What registries add to new objects, and keep of old ones."""

import copy
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.server_fields import (
    set_fields_on_create,
    set_fields_on_update,
)
from localkube.apiserver.kinds import builtin_kinds

KINDS = {kind.kind: kind for kind in builtin_kinds()}
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


def made(kind: str, metadata: Obj | None = None, **fields: Any) -> Obj:
    head = {"name": "x", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    obj: Obj = {"metadata": {**head, **(metadata or {})}, **copy.deepcopy(fields)}
    apply_defaults(obj, KINDS[kind])
    return obj


def created(kind: str, metadata: Obj | None = None, **fields: Any) -> Obj:
    obj = made(kind, metadata, **fields)
    set_fields_on_create(obj, KINDS[kind])
    return obj


def updated(kind: str, new: Obj, old: Obj) -> Obj:
    set_fields_on_update(new, old, KINDS[kind])
    return new


def test_a_job_selects_its_pods_by_its_uid() -> None:
    job = created("Job", spec={"template": TEMPLATE})
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    labels = {"job-name": "x", "controller-uid": "u"}
    labels |= {f"batch.kubernetes.io/{key}": value for key, value in labels.items()}
    assert job["spec"]["template"]["metadata"]["labels"] == labels
    assert job["metadata"]["labels"] == labels


def test_a_job_with_a_selector_of_its_own_is_left_alone() -> None:
    selector = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, **TEMPLATE}
    spec = {"manualSelector": True, "selector": selector, "template": template}
    job = created("Job", spec=spec)
    assert job["spec"]["selector"] == selector
    assert job["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_a_namespace_waits_for_its_content_to_go() -> None:
    assert created("Namespace")["spec"]["finalizers"] == ["kubernetes"]


def test_a_namespaces_finalizers_change_only_through_finalize() -> None:
    old = created("Namespace")
    new = updated("Namespace", made("Namespace", spec={}), old)
    assert new["spec"]["finalizers"] == ["kubernetes"]


def test_a_daemon_sets_template_is_counted() -> None:
    selector = {"matchLabels": {"a": "b"}}
    old = created("DaemonSet", spec={"selector": selector, "template": TEMPLATE})
    key = "deprecated.daemonset.template.generation"
    assert old["metadata"]["annotations"][key] == "1"
    other = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
    for template, count in ((TEMPLATE, "1"), (other, "2")):
        sent = made("DaemonSet", spec={"selector": selector, "template": template})
        new = updated("DaemonSet", sent, old)
        assert new["metadata"]["annotations"][key] == count


@pytest.mark.parametrize(
    ("sent", "source", "reference"),
    [
        (
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": "c"}},
            {"kind": "PersistentVolumeClaim", "name": "c"},
            {"kind": "PersistentVolumeClaim", "name": "c"},
        ),
        (
            {"dataSourceRef": {"apiGroup": "x.io", "kind": "K", "name": "c"}},
            {"apiGroup": "x.io", "kind": "K", "name": "c"},
            {"apiGroup": "x.io", "kind": "K", "name": "c"},
        ),
        ({"dataSource": {"apiGroup": "x.io", "kind": "K", "name": "c"}}, None, None),
        (
            {"dataSourceRef": {"kind": "K", "name": "c", "namespace": "n"}},
            None,
            {"kind": "K", "name": "c", "namespace": "n"},
        ),
    ],
)
def test_both_fields_for_a_claims_source_agree(
    sent: Obj, source: Obj | None, reference: Obj | None
) -> None:
    spec = created("PersistentVolumeClaim", spec=sent)["spec"]
    assert (spec.get("dataSource"), spec.get("dataSourceRef")) == (source, reference)


def test_secrets_of_a_service_account_are_names_only() -> None:
    account = created("ServiceAccount", secrets=[{"name": "s", "namespace": "n", "uid": "u"}])
    assert account["secrets"] == [{"name": "s"}]


def test_a_limit_range_may_come_without_a_name() -> None:
    assert created("LimitRange", {"name": ""})["metadata"]["name"] == "u"


def test_a_version_that_objects_were_stored_in_is_remembered() -> None:
    def crd(storage: str, status: Obj) -> Obj:
        versions = [{"name": v, "served": True, "storage": v == storage} for v in ("v1", "v2")]
        return made("CustomResourceDefinition", spec={"versions": versions}, status=status)

    old = crd("v1", {"storedVersions": ["v1"]})
    sent = crd("v2", {"storedVersions": ["v1"]})
    new = updated("CustomResourceDefinition", sent, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]


PORT = {"port": 80, "nodePort": 30000}
SERVICE = {"type": "NodePort", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"]}


def service(**spec: Any) -> Obj:
    return created("Service", spec={"ports": [{"port": 80}], "selector": {"a": "b"}, **spec})


def test_a_service_keeps_what_was_allocated_for_it() -> None:
    old = service(**SERVICE, ports=[PORT])
    new = updated("Service", service(type="NodePort"), old)
    assert new["spec"]["clusterIP"] == "10.0.0.9"
    assert new["spec"]["ports"][0]["nodePort"] == 30000


def test_a_service_that_becomes_internal_gives_its_node_ports_back() -> None:
    old = service(**SERVICE, ports=[PORT])
    sent = service(**{**SERVICE, "type": "ClusterIP"}, ports=[dict(PORT)])
    new = updated("Service", sent, old)
    assert "nodePort" not in new["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in new["spec"]


def test_a_service_that_becomes_a_name_gives_its_address_back() -> None:
    old = service(**SERVICE, ports=[PORT])
    sent = service(**{**SERVICE, "type": "ExternalName"}, externalName="a.b")
    new = updated("Service", sent, old)
    assert {"clusterIP", "clusterIPs"}.isdisjoint(new["spec"])
