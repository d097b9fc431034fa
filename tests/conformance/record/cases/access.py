"""Who may do what: RBAC, reviews, impersonation and service accounts' tokens."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.record.case import APPLY, Case, Json, Request, get, patch, post
from tests.conformance.record.objects import CONFIGMAPS, NS, PODS, RBAC, configmap, obj, pod

_API = "rbac.authorization.k8s.io/v1"
_ROLES = f"{RBAC}/namespaces/{{ns}}/roles"
_BINDINGS = f"{RBAC}/namespaces/{{ns}}/rolebindings"
_REVIEWS = "/apis/authorization.k8s.io/v1"
_AUTHN = "/apis/authentication.k8s.io/v1"
_READ = {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}


def _as(request: Request, user: str = "alice", **more: str) -> Request:
    """The same request, sent on behalf of somebody else."""
    headers = dict(request.headers) | {"Impersonate-User": user} | more
    return replace(request, headers=headers)


def _role(*rules: Json, name: str = "r") -> Request:
    return post(_ROLES, obj(_API, "Role", name, rules=list(rules)))


def _bound(user: str = "alice", role: str = "r") -> Request:
    return post(
        _BINDINGS,
        obj(
            _API,
            "RoleBinding",
            role,
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            subjects=[{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        ),
    )


_READER = (_role(_READ), _bound(), _as(get(PODS, until_status=200)))
# Without the verbs `escalate` and `bind`, which "*" would include.
_MANAGER_RULE = {
    "apiGroups": ["rbac.authorization.k8s.io"],
    "verbs": ["get", "list", "create"],
    "resources": ["roles", "rolebindings"],
}
_MANAGER = (_role(_MANAGER_RULE), _bound(), _as(get(_ROLES, until_status=200)))


def _review(**spec: Json) -> Json:
    return {"spec": spec}


_FORBIDDEN = (
    Case("forbidden: list", _as(get(PODS))),
    Case("forbidden: get", _as(get(f"{PODS}/p"))),
    Case("forbidden: over all namespaces", _as(get("/apis/apps/v1/deployments"))),
    Case("forbidden: cluster scope", _as(get("/api/v1/nodes/n"))),
    Case("forbidden: create", _as(post(CONFIGMAPS, configmap("c")))),
    Case("forbidden: delete collection", _as(Request("DELETE", CONFIGMAPS))),
    Case("forbidden: subresource", _as(post(f"{PODS}/p/binding", {}))),
    Case("forbidden: watch", _as(get(f"{PODS}?watch=1"))),
    Case(
        "forbidden: apply",
        _as(
            Request(
                "PATCH", f"{CONFIGMAPS}/c?fieldManager=m", configmap("c"), {"Content-Type": APPLY}
            )
        ),
    ),
    Case("forbidden: unknown resource", _as(get("/api/v1/foos"))),
    Case("forbidden: non-resource path", _as(get("/metrics"))),
    Case("forbidden: discovery is allowed", _as(get("/apis/apps"))),
    Case("forbidden: anonymous reads version", Request("GET", "/version", anonymous=True)),
    Case("forbidden: anonymous", Request("GET", "/apis", anonymous=True)),
    Case("forbidden: service account", _as(get(PODS), "system:serviceaccount:{ns}:default")),
    Case("allowed: by role", _as(get(PODS)), _READER),
    Case("allowed: not by this role", _as(post(PODS, pod("p"))), _READER),
    Case("allowed: by group", _as(get(PODS), "carol", **{"Impersonate-Group": "system:masters"})),
)

_RBAC = (
    Case("rbac: escalation", _as(post(_ROLES, obj(_API, "Role", "more", rules=[_READ]))), _MANAGER),
    Case(
        "rbac: escalation by binding",
        _as(
            post(
                _BINDINGS,
                obj(
                    _API,
                    "RoleBinding",
                    "more",
                    roleRef={
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "Role",
                        "name": "big",
                    },
                    subjects=[{"kind": "User", "name": "alice"}],
                ),
            )
        ),
        (_role(_READ, name="big"), *_MANAGER),
    ),
    Case(
        "rbac: roleRef is immutable",
        patch(f"{_BINDINGS}/r", {"roleRef": {"name": "x"}}),
        (_role(_READ), _bound()),
    ),
    Case(
        "rbac: bad roleRef",
        post(
            _BINDINGS,
            obj(_API, "RoleBinding", "b", roleRef={"apiGroup": "x", "kind": "Pod", "name": ""}),
        ),
    ),
    Case(
        "rbac: bad subjects",
        post(
            _BINDINGS,
            obj(
                _API,
                "RoleBinding",
                "b",
                roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                subjects=[
                    {"kind": "Odd", "name": "x"},
                    {"kind": "ServiceAccount", "name": "A_"},
                    {"kind": "User", "name": ""},
                ],
            ),
        ),
    ),
    Case(
        "rbac: rule without verbs",
        post(
            _ROLES,
            obj(_API, "Role", "r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": []}]),
        ),
    ),
    Case(
        "rbac: rule without groups",
        post(_ROLES, obj(_API, "Role", "r", rules=[{"resources": ["pods"], "verbs": ["get"]}])),
    ),
    Case(
        "rbac: non-resource rule in a role",
        post(_ROLES, obj(_API, "Role", "r", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])),
    ),
    Case(
        "rbac: cluster role with both",
        post(
            f"{RBAC}/clusterroles",
            obj(
                _API,
                "ClusterRole",
                "{ns}",
                rules=[
                    {
                        "nonResourceURLs": ["/x"],
                        "apiGroups": [""],
                        "resources": ["pods"],
                        "verbs": ["get"],
                    }
                ],
            ),
        ),
    ),
    Case("rbac: colon in a name", post(_ROLES, obj(_API, "Role", "a:b", rules=[]))),
    Case("rbac: slash in a name", post(_ROLES, obj(_API, "Role", "a/b", rules=[]))),
    Case("rbac: cluster-admin", get(f"{RBAC}/clusterroles/cluster-admin")),
    Case("rbac: view", get(f"{RBAC}/clusterroles/view")),
    Case("rbac: basic user", get(f"{RBAC}/clusterroles/system:basic-user")),
)

_ASKED = {"verb": "get", "resource": "pods", "namespace": "{ns}"}

_REVIEW = (
    Case(
        "review: self, administrator",
        post(
            f"{_REVIEWS}/selfsubjectaccessreviews",
            _review(resourceAttributes={"verb": "get", "resource": "pods"}),
        ),
    ),
    Case(
        "review: self, nobody",
        _as(post(f"{_REVIEWS}/selfsubjectaccessreviews", _review(resourceAttributes=_ASKED))),
    ),
    Case(
        "review: self, by role",
        _as(post(f"{_REVIEWS}/selfsubjectaccessreviews", _review(resourceAttributes=_ASKED))),
        _READER,
    ),
    Case(
        "review: self, subresource",
        _as(
            post(
                f"{_REVIEWS}/selfsubjectaccessreviews",
                _review(resourceAttributes=_ASKED | {"subresource": "log", "name": "p"}),
            )
        ),
        _READER,
    ),
    Case(
        "review: self, path",
        _as(
            post(
                f"{_REVIEWS}/selfsubjectaccessreviews",
                _review(nonResourceAttributes={"path": "/version", "verb": "get"}),
            )
        ),
    ),
    Case(
        "review: self, both",
        post(
            f"{_REVIEWS}/selfsubjectaccessreviews",
            _review(resourceAttributes=_ASKED, nonResourceAttributes={"path": "/", "verb": "get"}),
        ),
    ),
    Case("review: self, nothing", post(f"{_REVIEWS}/selfsubjectaccessreviews", _review())),
    Case(
        "review: of another",
        post(f"{_REVIEWS}/subjectaccessreviews", _review(resourceAttributes=_ASKED, user="alice")),
        _READER,
    ),
    Case(
        "review: of nobody",
        post(f"{_REVIEWS}/subjectaccessreviews", _review(resourceAttributes=_ASKED)),
    ),
    Case(
        "review: local",
        post(
            f"{_REVIEWS}/namespaces/{{ns}}/localsubjectaccessreviews",
            {
                "metadata": {"namespace": "{ns}"},
                "spec": {"resourceAttributes": _ASKED, "user": "alice"},
            },
        ),
        _READER,
    ),
    Case(
        "review: local, other namespace",
        post(
            f"{_REVIEWS}/namespaces/{{ns}}/localsubjectaccessreviews",
            {
                "metadata": {"namespace": "{ns}"},
                "spec": {"resourceAttributes": _ASKED | {"namespace": "x"}, "user": "alice"},
            },
        ),
    ),
    Case(
        "review: rules",
        _as(post(f"{_REVIEWS}/selfsubjectrulesreviews", _review(namespace="{ns}"))),
        _READER,
    ),
    Case(
        "review: rules of the administrator",
        post(f"{_REVIEWS}/selfsubjectrulesreviews", _review(namespace="{ns}")),
    ),
    Case("review: who am I", post(f"{_AUTHN}/selfsubjectreviews", {})),
    Case(
        "review: who am I, impersonated",
        _as(
            post(f"{_AUTHN}/selfsubjectreviews", {}),
            "alice",
            **{"Impersonate-Group": "devs", "Impersonate-Extra-Team": "a"},
        ),
    ),
    Case("review: get is not offered", get(f"{_REVIEWS}/selfsubjectaccessreviews")),
)

_TOKEN = f"{NS}/serviceaccounts/default/token"
_LIFE = {"spec": {"audiences": ["a"], "expirationSeconds": 600}}

_TOKENS = (
    Case("token: default", post(_TOKEN, {"spec": {}})),
    Case("token: audience and life", post(_TOKEN, _LIFE)),
    Case("token: too short", post(_TOKEN, {"spec": {"expirationSeconds": 60}})),
    Case("token: too long", post(_TOKEN, {"spec": {"expirationSeconds": 1 << 33}})),
    Case("token: absent account", post(f"{NS}/serviceaccounts/zz/token", {"spec": {}})),
    Case(
        "token: bound to a pod",
        post(
            _TOKEN,
            {
                "spec": {
                    "boundObjectRef": {
                        "kind": "Pod",
                        "apiVersion": "v1",
                        "name": "p",
                        "uid": "${p.metadata.uid}",
                    }
                }
            },
        ),
        (post(PODS, pod("p"), save="p"),),
    ),
    Case(
        "token: bound to an absent pod",
        post(
            _TOKEN, {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}}
        ),
    ),
    Case(
        "token: bound to a wrong uid",
        post(
            _TOKEN,
            {
                "spec": {
                    "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "x"}
                }
            },
        ),
        (post(PODS, pod("p"), save="p"),),
    ),
    Case(
        "token: bound to a wrong kind",
        post(
            _TOKEN,
            {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}}},
        ),
    ),
    Case(
        "token: review",
        post(f"{_AUTHN}/tokenreviews", {"spec": {"token": "${t.status.token}"}}),
        (post(_TOKEN, {"spec": {}}, save="t"),),
    ),
    Case(
        "token: review of another audience",
        post(
            f"{_AUTHN}/tokenreviews", {"spec": {"token": "${t.status.token}", "audiences": ["b"]}}
        ),
        (post(_TOKEN, _LIFE, save="t"),),
    ),
    Case("token: review of nonsense", post(f"{_AUTHN}/tokenreviews", {"spec": {"token": "x"}})),
    Case("token: review of nothing", post(f"{_AUTHN}/tokenreviews", {"spec": {}})),
    Case(
        "token: used",
        Request(
            "POST",
            f"{_AUTHN}/selfsubjectreviews",
            {},
            anonymous=True,
            headers={"Authorization": "Bearer ${t.status.token}"},
        ),
        (post(_TOKEN, {"spec": {}}, save="t"),),
    ),
)

CASES = (*_FORBIDDEN, *_RBAC, *_REVIEW, *_TOKENS)
