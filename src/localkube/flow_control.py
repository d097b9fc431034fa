"""The FlowSchemas and PriorityLevelConfigurations that every cluster has from its start (1.35).

Two of each are mandatory: their specs are fixed, and come back when they are deleted. The others
are suggestions, which an administrator may change or delete.

They describe how a kube-apiserver would share its time among requests. This server keeps to the
limits of security/in_flight.py whatever they say: it does not queue.
"""

from collections.abc import Sequence

from kubeclient.objects import Obj

GROUP = "flowcontrol.apiserver.k8s.io"
API_VERSION = f"{GROUP}/v1"
AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
EXEMPT = "exempt"
CATCH_ALL = "catch-all"
MANDATORY = (EXEMPT, CATCH_ALL)

_SYSTEM = "kube-system"
_BY_USER, _BY_NAMESPACE = "ByUser", "ByNamespace"


def _limited(shares: int, lendable: int, queues: int = 0, hand: int = 0) -> Obj:
    response: Obj = {"type": "Reject"}
    if queues:
        queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": 50}
        response = {"type": "Queue", "queuing": queuing}
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": lendable}
    return {"type": "Limited", "limited": {**limited, "limitResponse": response}}


LEVELS: dict[str, Obj] = {
    EXEMPT: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    CATCH_ALL: _limited(5, 0),
    "system": _limited(30, 33, 64, 6),
    "node-high": _limited(40, 25, 64, 6),
    "leader-election": _limited(10, 0, 16, 4),
    "workload-high": _limited(40, 50, 128, 6),
    "workload-low": _limited(100, 90, 128, 6),
    "global-default": _limited(20, 50, 128, 6),
}


def _groups(*names: str) -> list[Obj]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _users(*names: str) -> list[Obj]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


def _resources(
    verbs: Sequence[str], groups: Sequence[str], resources: Sequence[str], *, cluster: bool
) -> Obj:
    made: Obj = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    return made | ({"clusterScope": True} if cluster else {}) | {"namespaces": ["*"]}


_EVERYTHING: Obj = {
    "resourceRules": [_resources("*", "*", "*", cluster=True)],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
_EVERYBODY = _groups("system:unauthenticated", "system:authenticated")
_SYSTEM_ACCOUNTS: list[Obj] = [
    {"kind": "ServiceAccount", "serviceAccount": {"namespace": _SYSTEM, "name": "*"}}
]
_LEASES = ("coordination.k8s.io",), ("leases",)


def _schema(level: str, precedence: int, method: str, subjects: list[Obj], rules: Obj) -> Obj:
    made: Obj = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    if method:
        made["distinguisherMethod"] = {"type": method}
    return made | {"rules": [{"subjects": subjects, **rules}]}


SCHEMAS: dict[str, Obj] = {
    EXEMPT: _schema(EXEMPT, 1, "", _groups("system:masters"), _EVERYTHING),
    CATCH_ALL: _schema(CATCH_ALL, 10_000, _BY_USER, _EVERYBODY, _EVERYTHING),
    "probes": _schema(
        EXEMPT,
        2,
        "",
        _EVERYBODY,
        {
            "nonResourceRules": [
                {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}
            ]
        },
    ),
    "system-leader-election": _schema(
        "leader-election",
        100,
        _BY_USER,
        _users("system:kube-controller-manager", "system:kube-scheduler") + _SYSTEM_ACCOUNTS,
        {"resourceRules": [_resources(("get", "create", "update"), *_LEASES, cluster=False)]},
    ),
    "system-node-high": _schema(
        "node-high",
        400,
        _BY_USER,
        _groups("system:nodes"),
        {
            "resourceRules": [
                _resources("*", ("",), ("nodes", "nodes/status"), cluster=True),
                _resources("*", *_LEASES, cluster=False),
            ]
        },
    ),
    "system-nodes": _schema("system", 500, _BY_USER, _groups("system:nodes"), _EVERYTHING),
    "kube-controller-manager": _schema(
        "workload-high", 800, _BY_NAMESPACE, _users("system:kube-controller-manager"), _EVERYTHING
    ),
    "kube-scheduler": _schema(
        "workload-high", 800, _BY_NAMESPACE, _users("system:kube-scheduler"), _EVERYTHING
    ),
    "kube-system-service-accounts": _schema(
        "workload-high", 900, _BY_NAMESPACE, _SYSTEM_ACCOUNTS, _EVERYTHING
    ),
    "service-accounts": _schema(
        "workload-low", 9000, _BY_USER, _groups("system:serviceaccounts"), _EVERYTHING
    ),
    "global-default": _schema("global-default", 9900, _BY_USER, _EVERYBODY, _EVERYTHING),
}


def object_of(kind: str, name: str, spec: Obj) -> Obj:
    metadata = {"name": name, "annotations": {AUTO_UPDATE: "true"}}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
