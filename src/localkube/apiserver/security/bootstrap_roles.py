"""The RBAC objects that a cluster is born with: bootstrap_objects()."""

from copy import deepcopy

from kubeclient.objects import Obj
from localkube.apiserver.security.aggregation import (
    effective_rules,
    parse_cluster_role,
)
from localkube.apiserver.security.bootstrap_rules import (
    AGGREGATED_ROLES,
    KUBERNETES_ROLES,
    READ,
    rule,
)
from localkube.apiserver.security.rbac import GROUP
from localkube.apiserver.security.rules import rule_object

_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
# "true": whoever changes the object finds it mended at the next start, unless this is "false".
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_AGGREGATE = "rbac.authorization.k8s.io/"

_SCHEDULER = "User system:kube-scheduler"
_CONTROLLER_MANAGER = "User system:kube-controller-manager"
_AUTHENTICATED = "Group system:authenticated"
_LEADER = "create get list update watch"

# ClusterRoleBindings have the name of the role that they bind.
_CLUSTER_BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("Group system:masters",),
    "system:basic-user": (_AUTHENTICATED,),
    "system:discovery": (_AUTHENTICATED,),
    "system:kube-controller-manager": (_CONTROLLER_MANAGER,),
    "system:kube-dns": ("ServiceAccount kube-dns kube-system",),
    "system:kube-scheduler": (_SCHEDULER,),
    "system:monitoring": ("Group system:monitoring",),
    "system:node": (),  # the node authorizer knows better which node may do what
    "system:node-proxier": ("User system:kube-proxy",),
    "system:public-info-viewer": (_AUTHENTICATED, "Group system:unauthenticated"),
    "system:service-account-issuer-discovery": ("Group system:serviceaccounts",),
    "system:volume-scheduler": (_SCHEDULER,),
    "localkube:controllers": (_CONTROLLER_MANAGER,),
}

# Roles in kube-system, each with the name of its binding and whom it binds.
_SYSTEM_ROLES: dict[str, tuple[tuple[Obj, ...], str, tuple[str, ...]]] = {
    "extension-apiserver-authentication-reader": (
        (rule(READ, "core", "configmaps", "extension-apiserver-authentication"),),
        "system::extension-apiserver-authentication-reader",
        (_CONTROLLER_MANAGER, _SCHEDULER),
    ),
    "system::leader-locking-kube-controller-manager": (
        (
            rule(_LEADER, "coordination.k8s.io", "leases"),
            rule(_LEADER, "coordination.k8s.io", "leasecandidates"),
        ),
        "system::leader-locking-kube-controller-manager",
        (
            _CONTROLLER_MANAGER,
            "ServiceAccount kube-controller-manager kube-system",
            "ServiceAccount leader-election-controller kube-system",
        ),
    ),
    "system::leader-locking-kube-scheduler": (
        (
            rule(_LEADER, "coordination.k8s.io", "leases"),
            rule(_LEADER, "coordination.k8s.io", "leasecandidates"),
        ),
        "system::leader-locking-kube-scheduler",
        (_SCHEDULER, "ServiceAccount kube-scheduler kube-system"),
    ),
}


def bootstrap_objects() -> list[Obj]:
    """New objects each time: roles before the bindings that name them."""
    objects = [
        cluster_role(name, rules, aggregated_to=_gathered_by(name))
        for name, rules in KUBERNETES_ROLES.items()
    ]
    objects += _aggregated_roles(objects)
    for name, (rules, bound, subjects) in _SYSTEM_ROLES.items():
        objects += system_role(name, rules, bound, subjects)
    objects += [cluster_binding(name, subjects) for name, subjects in _CLUSTER_BINDINGS.items()]
    return objects


def cluster_role(name: str, rules: tuple[Obj, ...], *, aggregated_to: str = "") -> Obj:
    return _object("ClusterRole", name, rules=list(rules), labels=aggregated_to)


def cluster_binding(role: str, subjects: tuple[str, ...]) -> Obj:
    """Binds the ClusterRole of that name. A subject is "User name", "Group name" or
    "ServiceAccount name namespace"."""
    return _binding("ClusterRoleBinding", role, "ClusterRole", role, subjects)


def system_role(
    name: str, rules: tuple[Obj, ...], binding: str, subjects: tuple[str, ...]
) -> list[Obj]:
    """A Role in kube-system, and the RoleBinding that gives it to the subjects."""
    return [
        _object("Role", name, rules=list(rules)),
        _binding("RoleBinding", binding, "Role", name, subjects),
    ]


def _gathered_by(name: str) -> str:
    label = name.removeprefix("system:")
    return label if label.startswith("aggregate-to-") else ""


def _aggregated_roles(plain: list[Obj]) -> list[Obj]:
    made = []
    for name, (gathered_by, gathers) in AGGREGATED_ROLES.items():
        selector = {"matchLabels": {_AGGREGATE + gathers: "true"}}
        role = cluster_role(name, (), aggregated_to=gathered_by)
        made.append(role | {"aggregationRule": {"clusterRoleSelectors": [selector]}})
    parsed = {each["metadata"]["name"]: parse_cluster_role(each) for each in plain + made}
    for role in made:
        rules = effective_rules(parsed, role["metadata"]["name"])
        role["rules"] = [rule_object(each) for each in rules]
    return made


def _object(kind: str, name: str, *, rules: list[Obj] | None = None, labels: str = "") -> Obj:
    metadata: Obj = {
        "name": name,
        "labels": _LABELS | ({_AGGREGATE + labels: "true"} if labels else {}),
        "annotations": dict(_ANNOTATIONS),
    }
    if kind in ("Role", "RoleBinding"):
        metadata["namespace"] = "kube-system"
    made: Obj = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}
    return made if rules is None else made | {"rules": deepcopy(rules)}


def _binding(kind: str, name: str, role_kind: str, role: str, subjects: tuple[str, ...]) -> Obj:
    made = _object(kind, name)
    made["roleRef"] = {"apiGroup": GROUP, "kind": role_kind, "name": role}
    if subjects:
        made["subjects"] = [_subject(*words.split()) for words in subjects]
    return made


def _subject(kind: str, name: str, namespace: str = "") -> Obj:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"apiGroup": GROUP, "kind": kind, "name": name}
