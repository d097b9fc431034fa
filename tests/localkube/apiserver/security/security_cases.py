"""What is asked of a real kube-apiserver where access is decided, and later of ours."""

from collections.abc import Sequence
from typing import Any

RBAC = "rbac.authorization.k8s.io"
Json = Any
Headers = Sequence[tuple[str, str]]


def rule(verbs: str, group: str, resources: str, names: str = "") -> Json:
    made = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return made | ({"resourceNames": names.split()} if names else {})


def role(kind: str, name: str, *rules: Json, **more: Json) -> Json:
    space = {"namespace": "default"} if kind == "Role" else {}
    labels = {"labels": more.pop("labels")} if "labels" in more else {}
    metadata = {"name": name, **space, **labels}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": list(rules),
        **more,
    }


def binding(kind: str, name: str, of: str, *subjects: str) -> Json:
    referred, target = of.split()
    space = {"namespace": "default"} if kind == "RoleBinding" else {}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name, **space},
        "subjects": [_subject(*words.split()) for words in subjects],
        "roleRef": {"apiGroup": RBAC, "kind": referred, "name": target},
    }


def _subject(kind: str, name: str, namespace: str = "") -> Json:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "apiGroup": RBAC, "name": name}


def aggregation(**labels: str) -> Json:
    return {"clusterRoleSelectors": [{"matchLabels": labels}]}


OBJECTS: list[Json] = [
    role("Role", "reader", rule("get list watch", "", "pods pods/log")),
    role("Role", "named", rule("get", "", "configmaps", "cm1 cm2")),
    role("Role", "grants", rule("get create update", RBAC, "roles rolebindings")),
    role("ClusterRole", "scaler", rule("get update", "*", "*/scale")),
    role("ClusterRole", "wide", rule("*", "apps", "deployments"), rule("list", "", "*")),
    role("ClusterRole", "urls", {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]}),
    role(
        "ClusterRole",
        "as-others",
        rule("impersonate", "", "users groups", "bob devs system:authenticated"),
        rule("impersonate", "authentication.k8s.io", "userextras/scopes", "view"),
    ),
    role("ClusterRole", "plus", rule("get", "", "nodes"), labels={"to": "sum"}),
    role("ClusterRole", "sum", aggregationRule=aggregation(to="sum")),
    role("ClusterRole", "binder", rule("bind", RBAC, "clusterroles", "wide")),
    role("ClusterRole", "escalator", rule("escalate", RBAC, "clusterroles")),
    role("ClusterRole", "role-writer", rule("create", RBAC, "clusterroles")),
    role("ClusterRole", "sub-star", rule("get", "", "pods/*")),
    binding("RoleBinding", "alice-reads", "Role reader", "User alice"),
    binding("RoleBinding", "alice-named", "Role named", "User alice"),
    binding("RoleBinding", "robot-reads", "Role reader", "ServiceAccount robot"),
    binding("RoleBinding", "grantor", "Role grants", "User gina"),
    binding("RoleBinding", "gina-reads", "Role reader", "User gina"),
    binding("RoleBinding", "gina-binds", "ClusterRole binder", "User gina"),
    binding("RoleBinding", "gone", "Role nowhere", "User dave"),
    binding("ClusterRoleBinding", "gone", "ClusterRole nothing", "User dave"),
    binding("ClusterRoleBinding", "devs-scale", "ClusterRole scaler", "Group devs"),
    binding("ClusterRoleBinding", "ops-wide", "ClusterRole wide", "Group ops"),
    binding("ClusterRoleBinding", "mona-urls", "ClusterRole urls", "User mona"),
    binding("ClusterRoleBinding", "ivy", "ClusterRole as-others", "User ivy"),
    binding("ClusterRoleBinding", "sum", "ClusterRole sum", "User sam"),
    binding("ClusterRoleBinding", "esc", "ClusterRole escalator", "User eve"),
    binding("ClusterRoleBinding", "write", "ClusterRole role-writer", "User wes", "User eve"),
    binding("ClusterRoleBinding", "sub-star", "ClusterRole sub-star", "User stan"),
    binding("ClusterRoleBinding", "edit-all", "ClusterRole edit", "ServiceAccount editor default"),
    binding("RoleBinding", "adam", "ClusterRole admin", "User adam"),
]

ROBOT = "system:serviceaccount:default:robot"
EDITOR = "system:serviceaccount:default:editor"
NODE = "system:node:n1"
NODES = "system:nodes"
LEASES = "leases.coordination.k8s.io"
ROLES = f"roles.{RBAC}"

# user, groups, verb, resource[.group][/subresource] or path, [namespace, [name, [field selector]]]
REQUESTS: list[tuple[str, ...]] = [
    ("alice", "", "list", "pods", "default"),
    ("alice", "", "list", "pods"),
    ("alice", "", "list", "pods", "kube-system"),
    ("alice", "", "get", "pods", "default", "p1"),
    ("alice", "", "delete", "pods", "default", "p9"),
    ("alice", "", "deletecollection", "pods", "default"),
    ("alice", "", "create", "pods", "default"),
    ("alice", "", "get", "pods/log", "default", "p9"),
    ("alice", "", "get", "pods/exec", "default", "p9"),
    ("alice", "", "create", "pods/eviction", "default", "p9"),
    ("alice", "", "get", "configmaps", "default", "cm1"),
    ("alice", "", "get", "configmaps", "default", "cm3"),
    ("alice", "", "list", "configmaps", "default"),
    ("alice", "", "list", "pods", "default", "p1", "metadata.name=p1"),
    ("alice", "", "list", "configmaps", "default", "cm1", "metadata.name=cm1"),
    ("alice", "", "get", "namespaces", "default", "default"),
    ("alice", "", "get", "/metrics"),
    ("alice", "", "get", "/api"),
    ("alice", "", "get", "/healthz"),
    ("mona", "", "get", "/logs/a/b"),
    ("mona", "", "get", "/logs"),
    ("mona", "", "post", "/metrics"),
    ("mona", "", "get", "/foo<b>"),
    ("dora", "devs", "get", "deployments.apps/scale", "default", "d"),
    ("dora", "devs", "get", "deployments.apps", "default", "d"),
    ("otto", "ops", "delete", "deployments.apps", "default", "d"),
    ("otto", "ops", "get", "deployments.apps/status", "default", "d"),
    ("otto", "ops", "list", "secrets"),
    ("otto", "ops", "watch", "secrets"),
    ("otto", "ops", "list", "nodes"),
    ("dave", "", "list", "pods", "default"),
    ("dave", "", "list", "nodes"),
    ("stan", "", "get", "pods/log", "default", "p9"),
    (ROBOT, "", "list", "pods", "default"),
    (ROBOT, "", "list", "secrets", "default"),
    (EDITOR, "", "list", "secrets", "kube-system"),
    (EDITOR, "", "list", ROLES, "default"),
    ("adam", "", "list", ROLES, "default"),
    ("adam", "", "list", "nodes"),
    ("sam", "", "get", "nodes", "", "n9"),
    ("root", "system:masters", "get", "/foo"),
    (NODE, NODES, "get", "nodes", "", "n1"),
    (NODE, NODES, "get", "nodes", "", "n2"),
    (NODE, NODES, "list", "nodes"),
    (NODE, NODES, "list", "pods"),
    (NODE, NODES, "list", "pods", "", "", "spec.nodeName=n1"),
    (NODE, NODES, "list", "pods", "", "", "spec.nodeName=n2"),
    (NODE, NODES, "get", "pods", "default", "p1"),
    (NODE, NODES, "get", "pods", "default", "p2"),
    (NODE, NODES, "get", "pods/log", "default", "p1"),
    (NODE, NODES, "get", "secrets", "default", "used"),
    (NODE, NODES, "get", "secrets", "default", "unused"),
    (NODE, NODES, "list", "secrets", "default"),
    (NODE, NODES, "delete", "secrets", "default", "used"),
    (NODE, NODES, "get", "configmaps", "default", "used"),
    (NODE, NODES, "get", LEASES, "kube-node-lease", "n1"),
    (NODE, NODES, "get", LEASES, "kube-node-lease", "n2"),
    (NODE, NODES, "list", LEASES, "kube-node-lease"),
    (NODE, NODES, "get", LEASES, "default", "n1"),
    (NODE, NODES, "get", "serviceaccounts", "default", "robot"),
    (NODE, NODES, "get", "serviceaccounts", "default", "editor"),
    (NODE, NODES, "create", "serviceaccounts/token", "default", "editor"),
    (NODE, NODES, "get", "persistentvolumeclaims", "default", "c"),
    (NODE, NODES, "get", "csinodes.storage.k8s.io", "", "n2"),
    (NODE, NODES, "list", "deployments.apps"),
    (NODE, NODES, "list", "services"),
    ("system:node:", NODES, "list", "services"),
]


def access(case: Sequence[str]) -> dict[str, str]:
    """The fields of the Access that a request asks for."""
    verb, what, *rest = case[2:]
    if what.startswith("/"):
        return {"verb": verb, "path": what}
    head, _, subresource = what.partition("/")
    resource, _, group = head.partition(".")
    named = dict(zip(("namespace", "name", "field_selector"), rest, strict=False))
    fields = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    return fields | named


def _spec(**spec: Json) -> Json:
    return {"spec": spec}


LIST_PODS = {"verb": "list", "resource": "pods", "namespace": "default"}
EXEC = {"verb": "create", "resource": "pods", "subresource": "exec"}
GET_URL = {"verb": "get", "path": "/api"}
SCALE = {"verb": "get", "resource": "x", "subresource": "scale"}
# user, groups, kind, namespace, body
REVIEWS: list[tuple[str, str, str, str, Json]] = [
    ("alice", "", "SelfSubjectAccessReview", "", _spec(resourceAttributes=LIST_PODS)),
    ("alice", "", "SelfSubjectAccessReview", "", _spec(resourceAttributes=EXEC)),
    ("alice", "", "SelfSubjectAccessReview", "", _spec(nonResourceAttributes=GET_URL)),
    ("dave", "", "SelfSubjectAccessReview", "", _spec(resourceAttributes=LIST_PODS)),
    (NODE, NODES, "SelfSubjectAccessReview", "", _spec(resourceAttributes=LIST_PODS)),
    ("alice", "", "SelfSubjectAccessReview", "", _spec()),
    (
        "alice",
        "",
        "SelfSubjectAccessReview",
        "",
        {"metadata": {"name": "x"}, "spec": {"resourceAttributes": LIST_PODS}},
    ),
    (
        "",
        "",
        "SubjectAccessReview",
        "",
        _spec(user="dora", groups=["devs"], resourceAttributes={"verb": "get", "resource": "x"}),
    ),
    (
        "",
        "",
        "SubjectAccessReview",
        "",
        _spec(user="dora", groups=["devs"], resourceAttributes=SCALE),
    ),
    ("", "", "SubjectAccessReview", "", _spec(resourceAttributes=LIST_PODS)),
    (
        "",
        "",
        "LocalSubjectAccessReview",
        "default",
        _spec(user="alice", resourceAttributes=LIST_PODS),
    ),
    (
        "",
        "",
        "LocalSubjectAccessReview",
        "kube-system",
        _spec(user="alice", resourceAttributes=LIST_PODS),
    ),
    ("alice", "", "SelfSubjectRulesReview", "", _spec(namespace="default")),
    ("alice", "", "SelfSubjectRulesReview", "", _spec()),
    ("mona", "", "SelfSubjectRulesReview", "", _spec(namespace="default")),
    ("", "", "SelfSubjectRulesReview", "", _spec(namespace="default")),
    ("dave", "", "SelfSubjectRulesReview", "", _spec(namespace="default")),
    (NODE, NODES, "SelfSubjectRulesReview", "", _spec(namespace="default")),
    ("alice", "devs", "SelfSubjectReview", "", {}),
    (ROBOT, "", "SelfSubjectReview", "", {}),
    ("", "", "SelfSubjectReview", "", {}),
    ("", "", "TokenReview", "", _spec(token="wrong")),
    ("", "", "TokenReview", "", _spec()),
    ("", "", "TokenReview", "", _spec(token="$robot")),
    ("", "", "TokenReview", "", _spec(token="$robot", audiences=["other"])),
    ("", "", "TokenReview", "", _spec(token="$bound")),
    ("", "", "TokenReview", "", _spec(token="$vault")),
    ("", "", "TokenReview", "", _spec(token="$vault", audiences=["vault", "x"])),
    ("", "", "TokenReview", "", _spec(token="$mangled")),
    ("", "", "TokenReview", "", _spec(token="$gone")),
]

URL_RULE = {"verbs": ["get", "put"], "nonResourceURLs": ["/x", "/api"]}
GRANTS: list[tuple[str, Json]] = [
    ("gina", role("Role", "n1", rule("get", "", "pods"))),
    ("gina", role("Role", "n2", rule("delete get create", "", "secrets pods"))),
    ("gina", role("Role", "n3", rule("get", "", "configmaps", "a b"), rule("list", "x", "y"))),
    ("wes", role("ClusterRole", "n4", URL_RULE)),
    ("wes", role("ClusterRole", "n5", aggregationRule=aggregation(a="b"))),
    ("eve", role("ClusterRole", "n6", rule("*", "*", "*"))),
    ("gina", binding("RoleBinding", "b1", "ClusterRole wide", "User alice")),
    ("gina", binding("RoleBinding", "b2", "ClusterRole cluster-admin", "User alice")),
    ("gina", binding("RoleBinding", "b3", "ClusterRole nothing", "User alice")),
    ("gina", binding("RoleBinding", "b4", "Role reader", "User alice")),
    ("gina", binding("RoleBinding", "b5", "Role nowhere", "User alice")),
]

BOB = ("Impersonate-User", "bob")
# By ivy, who may impersonate some, or by the administrator ("").
IMPERSONATIONS: list[tuple[str, Headers]] = [
    ("ivy", [BOB]),
    ("ivy", [BOB, ("Impersonate-Group", "devs")]),
    ("ivy", [BOB, ("Impersonate-Extra-Scopes", "view")]),
    ("ivy", [("Impersonate-User", "alice")]),
    ("ivy", [BOB, ("Impersonate-Group", "system:masters")]),
    ("ivy", [BOB, ("Impersonate-Uid", "1")]),
    ("ivy", [BOB, ("Impersonate-Extra-Scopes", "all")]),
    ("ivy", [("Impersonate-User", ROBOT)]),
    ("ivy", [("Impersonate-Group", "devs")]),
    ("ivy", [("Impersonate-Uid", "1")]),
    ("", [("Impersonate-User", ROBOT)]),
    ("", [("Impersonate-User", "system:anonymous")]),
    ("", [("Impersonate-User", "a"), ("Impersonate-Group", "system:unauthenticated")]),
    ("", [("Impersonate-User", "a"), ("Impersonate-Extra-Acme.com%2fteam", "x")]),
    ("", [("Impersonate-User", "system:serviceaccount:Bad:x")]),
    ("", [("Impersonate-User", "a"), ("Impersonate-Uid", "7"), ("Impersonate-Group", "g")]),
]

POD_REF = {"kind": "Pod", "apiVersion": "v1", "name": "p1"}
# Tokens of `robot` that the reviews above ask about. $mangled is $robot with another signature.
TOKENS: dict[str, Json] = {
    "$robot": {},
    "$bound": {"boundObjectRef": POD_REF},
    "$vault": {"audiences": ["vault"]},
    "$gone": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "doomed"}},
}
# service account, body
TOKEN_REQUESTS: list[tuple[str, Json]] = [
    ("robot", {}),
    ("robot", _spec(expirationSeconds=600, audiences=["vault"])),
    ("robot", _spec(expirationSeconds=599)),
    ("robot", _spec(expirationSeconds=2**32 + 1)),
    ("robot", _spec(boundObjectRef=POD_REF)),
    ("robot", _spec(expirationSeconds=3607, boundObjectRef=POD_REF)),
    ("robot", _spec(boundObjectRef=POD_REF | {"uid": "wrong"})),
    ("robot", _spec(boundObjectRef=POD_REF | {"name": "nope"})),
    ("robot", _spec(boundObjectRef=POD_REF | {"name": "p2"})),
    ("robot", _spec(boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "used"})),
    ("robot", _spec(boundObjectRef={"kind": "Node", "apiVersion": "v1", "name": "n1"})),
    ("robot", _spec(boundObjectRef={"kind": "ConfigMap", "apiVersion": "v1", "name": "used"})),
    ("robot", {"metadata": {"name": "other"}}),
    ("robot", {"metadata": {"namespace": "other"}}),
    ("robot", {"metadata": {"uid": "wrong"}}),
]
