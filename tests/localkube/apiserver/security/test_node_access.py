from typing import Any

import pytest

from localkube.apiserver.request import User
from localkube.apiserver.security.access import Access
from localkube.apiserver.security.identities import ADMIN, node_user
from localkube.apiserver.security.node_creation import creation_refusal
from localkube.apiserver.security.pod_references import references
from localkube.apiserver.security.rbac import Authorizer
from tests.localkube.apiserver.security.security_world import (
    Objects,
    recorded_authorizer,
    recorded_objects,
)

AUTHORIZER = recorded_authorizer()
NODES = recorded_objects()
N1 = node_user("n1")
LEASES = "coordination.k8s.io"
STORAGE = "storage.k8s.io"


@pytest.mark.parametrize(
    ("access", "allowed"),
    [
        (Access("patch", "", "nodes", name="n1"), True),
        (Access("patch", "", "nodes", name="n2"), False),
        (Access("patch", "", "nodes", "status", name="n1"), True),
        (Access("update", "", "nodes", "status", name="n2"), False),
        (Access("delete", "", "nodes", name="n1"), False),
        (Access("create", "", "nodes"), True),
        (Access("create", "", "nodes", "status", name="n1"), False),
        (Access("get", "", "nodes", "proxy", name="n1"), False),
        (Access("patch", "", "pods", "status", "default", "p1"), True),
        (Access("patch", "", "pods", "status", "default", "p2"), False),
        (Access("patch", "", "pods", "status", "default", "gone"), False),
        (Access("delete", "", "pods", "", "default", "p1"), True),
        (Access("delete", "", "pods", "", "default", "p2"), False),
        (Access("create", "", "pods", "eviction", "default", "p1"), True),
        (Access("create", "", "pods", "eviction", "default", "p2"), False),
        (Access("create", "", "pods", "exec", "default", "p1"), False),
        (Access("create", "", "pods", "binding", "default", "p1"), False),
        (Access("patch", "", "pods", "", "default", "p1"), False),
        (Access("watch", "", "pods", field_selector="spec.nodeName=n1,a=b"), True),
        (Access("watch", "", "pods", field_selector="spec.nodeName!=n1"), False),
        (Access("watch", "", "pods", field_selector=r"a=b\,spec.nodeName\=n1"), False),
        (Access("list", "", "pods", "", "default", "p1"), True),
        (Access("watch", "", "secrets", "", "default", "used"), True),
        (Access("get", "", "secrets", "", "other", "used"), False),
        (Access("get", "", "secrets", name="used"), False),
        (Access("create", "", "serviceaccounts", "token", "default", "robot"), True),
        (Access("create", "", "serviceaccounts", "token", "default", "other"), False),
        (Access("create", "", "serviceaccounts", namespace="default"), False),
        (Access("update", LEASES, "leases", "", "kube-node-lease", "n1"), True),
        (Access("update", LEASES, "leases", "", "kube-node-lease", "n2"), False),
        (Access("create", LEASES, "leases", "", "kube-node-lease"), True),
        (Access("update", STORAGE, "csinodes", name="n1"), True),
        (Access("list", STORAGE, "csinodes"), False),
        (Access("create", "", "events", namespace="default"), True),
        (Access("create", "events.k8s.io", "events", namespace="default"), True),
        (Access("list", "", "events"), False),
        (Access("create", "apps", "deployments", namespace="default"), False),
        (Access("get", path="/api"), True),
        (Access("get", path="/metrics"), False),
    ],
)
def test_a_node_may_what_its_own_pods_need(access: Access, allowed: bool) -> None:
    assert AUTHORIZER.allowed(N1, access).allowed is allowed


VOLUMES: list[Any] = [
    {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": {"claimRef": claim}}
    for name, claim in (
        ("mine", {"namespace": "default", "name": "used"}),
        ("theirs", {"namespace": "default", "name": "other"}),
        ("elsewhere", {"namespace": "other", "name": "used"}),
        ("free", None),
    )
]
ATTACHMENTS: list[Any] = [
    {"kind": "VolumeAttachment", "metadata": {"name": f"at-{node}"}, "spec": {"nodeName": node}}
    for node in ("n1", "n2")
]
POD: Any = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "n1", "volumes": [{"persistentVolumeClaim": {"claimName": "used"}}]},
}


@pytest.mark.parametrize(
    ("access", "allowed"),
    [
        (Access("get", "", "persistentvolumes", name="mine"), True),
        (Access("get", "", "persistentvolumes", name="theirs"), False),
        (Access("get", "", "persistentvolumes", name="elsewhere"), False),
        (Access("get", "", "persistentvolumes", name="free"), False),
        (Access("get", "", "persistentvolumes", name="gone"), False),
        (Access("get", "", "persistentvolumes", "status", name="mine"), False),
        (Access("list", "", "persistentvolumes"), False),
        (Access("patch", "", "persistentvolumes", name="mine"), False),
        (Access("get", STORAGE, "volumeattachments", name="at-n1"), True),
        (Access("get", STORAGE, "volumeattachments", name="at-n2"), False),
        (Access("get", STORAGE, "volumeattachments", name="gone"), False),
        (Access("list", STORAGE, "volumeattachments"), False),
    ],
)
def test_a_node_reads_the_volumes_of_its_own_pods(access: Access, allowed: bool) -> None:
    nodes = Objects([POD, *VOLUMES, *ATTACHMENTS])
    assert Authorizer(nodes).allowed(N1, access).allowed is allowed


def test_a_user_with_a_nodes_name_but_not_its_group_is_no_node() -> None:
    impostor = User("system:node:n1", ("system:authenticated",))
    assert not AUTHORIZER.allowed(impostor, Access("get", "", "nodes", name="n1")).allowed


def _body(name: str = "", spec: Any = None, annotations: Any = None) -> Any:
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


MIRROR = {"kubernetes.io/config.mirror": "x"}
TOKEN = Access("create", "", "serviceaccounts", "token", "default", "robot")


@pytest.mark.parametrize(
    ("access", "body", "is_refused"),
    [
        (Access("create", "", "nodes"), _body("n1"), False),
        (Access("create", "", "nodes"), _body("n2"), True),
        (Access("create", LEASES, "leases"), _body("n2"), True),
        (Access("create", STORAGE, "csinodes"), _body("n2"), True),
        (Access("create", "", "pods"), _body("p", {"nodeName": "n1"}), True),
        (Access("create", "", "pods"), _body("p", {"nodeName": "n1"}, MIRROR), False),
        (Access("create", "", "pods"), _body("p", {"nodeName": "n2"}, MIRROR), True),
        (TOKEN, _body(), True),
        (TOKEN, _body(spec={"boundObjectRef": {"kind": "Pod", "name": "p1"}}), True),
        (TOKEN, _body(spec={"boundObjectRef": {"kind": "Pod", "name": "p1", "uid": "u"}}), False),
        (TOKEN, _body(spec={"boundObjectRef": {"kind": "Pod", "name": "p2", "uid": "u"}}), True),
        (TOKEN, {"spec": []}, True),
        (Access("create", "", "pods"), {"metadata": "x"}, True),
        (Access("create", "", "events"), _body("e"), False),
        (Access("patch", "", "nodes", name="n2"), _body("n2"), False),
    ],
)
def test_a_node_creates_only_its_own(access: Access, body: Any, is_refused: bool) -> None:
    assert (creation_refusal(N1, access, body, NODES) is not None) is is_refused
    assert creation_refusal(ADMIN, access, body, NODES) is None


def test_a_pod_refers_to_all_that_it_mounts_reads_or_runs_as() -> None:
    pod = {
        "spec": {
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "pull"}],
            "volumes": [
                {"secret": {"secretName": "s1"}},
                {"configMap": {"name": "c1"}},
                {"persistentVolumeClaim": {"claimName": "v1"}},
                {
                    "projected": {
                        "sources": [{"secret": {"name": "s2"}}, {"configMap": {"name": "c2"}}]
                    }
                },
                {"emptyDir": {}},
            ],
            "containers": [{"envFrom": [{"secretRef": {"name": "s3"}}]}],
            "initContainers": [
                {"env": [{"valueFrom": {"configMapKeyRef": {"name": "c3", "key": "k"}}}]}
            ],
            "ephemeralContainers": [
                {
                    "env": [
                        {"valueFrom": {"secretKeyRef": {"name": "s4", "key": "k"}}},
                        {"value": ""},
                    ]
                }
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "r1"}],
        },
        "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "r2"}]},
    }
    secrets = {("secrets", name) for name in ("pull", "s1", "s2", "s3", "s4")}
    maps = {("configmaps", name) for name in ("c1", "c2", "c3")}
    claims = {("resourceclaims", "r1"), ("resourceclaims", "r2"), ("persistentvolumeclaims", "v1")}
    assert references(pod) == secrets | maps | claims | {("serviceaccounts", "sa")}
    assert references({}) == set()
