"""Nodes, claims, ingresses and namespaces in admission."""

from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.admission.default_classes import (
    check_claim_growth,
    default_ingress_class,
    default_storage_class,
)
from localkube.apiserver.admission.node_restriction import restrict_node
from localkube.apiserver.admission.pod_security import check_levels
from localkube.apiserver.admission.taints import taint_new_node
from localkube.apiserver.request import User
from tests.localkube.apiserver.admission.small_cluster import (
    SmallCluster,
    a_cluster,
    refused,
    write,
)

STORAGE_CLASSES = "storageclasses.storage.k8s.io"
INGRESS_CLASSES = "ingressclasses.networking.k8s.io"
INGRESSES = "ingresses.networking.k8s.io"
CLAIMS = "persistentvolumeclaims"


def _defaults(resource: str, mark: str, *classes: tuple[str, str]) -> SmallCluster:
    cluster = a_cluster()
    for name, created in classes:
        metadata = {"annotations": {mark: "true"}, "creationTimestamp": created}
        cluster.put(resource, name, metadata=metadata)
    return cluster


@pytest.mark.parametrize(
    ("classes", "chosen"),
    [
        ((), None),
        ((("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")), "b"),
        ((("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-01T00:00:00Z")), "a"),
    ],
)
def test_a_claim_gets_the_newest_default_class(classes: Any, chosen: str | None) -> None:
    mark = "storageclass.kubernetes.io/is-default-class"
    claim: Obj = {"metadata": {"name": "c"}, "spec": {}}
    default_storage_class(write(CLAIMS, claim), _defaults(STORAGE_CLASSES, mark, *classes))
    assert claim["spec"].get("storageClassName") == chosen


def test_a_claim_for_no_class_keeps_it() -> None:
    mark = "storageclass.kubernetes.io/is-default-class"
    cluster = _defaults(STORAGE_CLASSES, mark, ("a", ""))
    claim: Obj = {"metadata": {"name": "c"}, "spec": {"storageClassName": ""}}
    default_storage_class(write(CLAIMS, claim), cluster)
    assert claim["spec"]["storageClassName"] == ""


def test_an_ingress_gets_the_default_class_unless_it_names_one() -> None:
    mark = "ingressclass.kubernetes.io/is-default-class"
    cluster = _defaults(INGRESS_CLASSES, mark, ("ic", ""))
    plain: Obj = {"metadata": {"name": "i"}, "spec": {}}
    old: Obj = {"metadata": {"name": "i", "annotations": {"kubernetes.io/ingress.class": "x"}}}
    default_ingress_class(write(INGRESSES, plain), cluster)
    default_ingress_class(write(INGRESSES, old), cluster)
    assert plain["spec"] == {"ingressClassName": "ic"}
    assert old["spec"] == {}


def _claim(storage: str, phase: str = "Bound") -> Obj:
    spec = {"storageClassName": "s", "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": phase}}


def test_a_bound_claim_grows_if_its_class_lets_it() -> None:
    cluster = a_cluster()
    cluster.put(STORAGE_CLASSES, "s", allowVolumeExpansion=True)
    check_claim_growth(write(CLAIMS, _claim("2Gi"), Operation.UPDATE, old=_claim("1Gi")), cluster)


@pytest.mark.parametrize(
    ("phase", "why"),
    [
        ("Pending", "Only bound persistent volume claims can be expanded"),
        (
            "Bound",
            "only dynamically provisioned pvc can be resized and the storageclass that "
            "provisions the pvc must support resize",
        ),
    ],
)
def test_other_claims_do_not_grow(phase: str, why: str) -> None:
    attributes = write(CLAIMS, _claim("2Gi"), Operation.UPDATE, old=_claim("1Gi", phase))
    with refused() as error:
        check_claim_growth(attributes, a_cluster())
    assert error.value.status["message"] == f'persistentvolumeclaims "c" is forbidden: {why}'


def test_a_new_node_is_tainted_once() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    other = {"key": "gpu", "effect": "NoSchedule"}
    node: Obj = {"metadata": {"name": "n"}, "spec": {"taints": [other]}}
    for _ in range(2):
        taint_new_node(write("nodes", node), a_cluster())
        assert node["spec"]["taints"] == [other, taint]
    taint_new_node(write("nodes", node, Operation.UPDATE, old=node), a_cluster())
    assert node["spec"]["taints"] == [other, taint]


KUBELET = User(name="system:node:n", groups=("system:nodes",))


def _node(labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    return {"metadata": {"name": "n", "labels": labels or {}}, "spec": spec}


@pytest.mark.parametrize(
    "label",
    ["kubernetes.io/hostname", "node.kubernetes.io/x", "x.kubelet.kubernetes.io/y", "own.io/z"],
)
def test_a_node_may_take_labels_of_its_own(label: str) -> None:
    restrict_node(write("nodes", _node({label: "1"}), user=KUBELET), a_cluster())
    changed = write("nodes", _node({label: "2"}), Operation.UPDATE, old=_node(), user=KUBELET)
    restrict_node(changed, a_cluster())


@pytest.mark.parametrize(
    "label",
    ["node-restriction.kubernetes.io/x", "node-role.kubernetes.io/admin", "a.k8s.io/b"],
)
def test_a_node_may_not_take_labels_that_others_rely_on(label: str) -> None:
    with refused() as created:
        restrict_node(write("nodes", _node({label: "1"}), user=KUBELET), a_cluster())
    assert created.value.status["message"] == (
        f'nodes "n" is forbidden: node "n" is not allowed to set the following labels: {label}'
    )
    for new, old in ((_node({label: "1"}), _node()), (_node(), _node({label: "1"}))):
        with refused() as changed:
            restrict_node(write("nodes", new, Operation.UPDATE, old=old, user=KUBELET), a_cluster())
        assert changed.value.status["message"] == (
            f'nodes "n" is forbidden: is not allowed to modify labels: {label}'
        )


def test_a_node_may_not_take_off_its_taints() -> None:
    old = _node(taints=[{"key": "a", "effect": "NoSchedule"}])
    with refused() as error:
        restrict_node(write("nodes", _node(), Operation.UPDATE, old=old, user=KUBELET), a_cluster())
    assert error.value.status["message"] == (
        'nodes "n" is forbidden: node "n" is not allowed to modify taints'
    )


def test_others_may_label_nodes_as_they_like() -> None:
    restrict_node(write("nodes", _node({"node-role.kubernetes.io/gpu": ""})), a_cluster())


def test_pod_security_levels_are_accepted_with_a_warning() -> None:
    labels = {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "privileged",
    }
    attributes = write("namespaces", {"metadata": {"name": "x", "labels": labels}})
    check_levels(attributes, a_cluster())
    assert attributes.warnings == [
        "pod-security.kubernetes.io/enforce=restricted has no effect: "
        "this cluster does not enforce it"
    ]


def test_an_unknown_pod_security_level_is_invalid() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "nope"}
    with refused(422) as error:
        check_levels(
            write("namespaces", {"metadata": {"name": "x", "labels": labels}}), a_cluster()
        )
    assert error.value.status["message"] == (
        'Namespace "x" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: '
        'Invalid value: "nope": must be one of privileged, baseline, restricted'
    )
