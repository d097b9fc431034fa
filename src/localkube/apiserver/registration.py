"""The APIServices that a cluster is born with: one for each version of each built-in group.

Priorities are those of kube-apiserver 1.35. Clients sort groups by them.
"""

from collections.abc import Iterable

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind

MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_ON_START = "onstart"
_VERSION_PRIORITY = 15
_OWN_GROUP = "apiregistration.k8s.io"
# Elsewhere another server answers them, who registers himself: here, too, somebody may want to.
_REPLACEABLE = frozenset({"metrics.k8s.io"})
_GROUP_PRIORITIES = {
    "": 18_000,
    "apps": 17_800,
    "events.k8s.io": 17_750,
    "authentication.k8s.io": 17_700,
    "authorization.k8s.io": 17_600,
    "autoscaling": 17_500,
    "batch": 17_400,
    "certificates.k8s.io": 17_300,
    "networking.k8s.io": 17_200,
    "policy": 17_100,
    "rbac.authorization.k8s.io": 17_000,
    "storage.k8s.io": 16_800,
    "admissionregistration.k8s.io": 16_700,
    "apiextensions.k8s.io": 16_700,
    "scheduling.k8s.io": 16_600,
    "coordination.k8s.io": 16_500,
    "node.k8s.io": 16_300,
    "discovery.k8s.io": 16_200,
    "resource.k8s.io": 16_200,
    "flowcontrol.apiserver.k8s.io": 16_100,
    "metrics.k8s.io": 100,
}
_VERSION_PRIORITIES = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("resource.k8s.io", "v1"): 21,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("metrics.k8s.io", "v1beta1"): 100,
}


def local_services(kinds: Iterable[Kind]) -> list[Obj]:
    versions = dict.fromkeys((kind.group, kind.version) for kind in kinds)
    # The group of APIServices itself is nobody's to register.
    return [_service(*each) for each in versions if each[0] != _OWN_GROUP]


def _service(group: str, version: str) -> Obj:
    metadata: Obj = {"name": f"{version}.{group}"}
    if group not in _REPLACEABLE:
        metadata["labels"] = {MANAGED: _ON_START}
    spec: Obj = {"group": group} if group else {}
    spec |= {
        "version": version,
        "groupPriorityMinimum": _GROUP_PRIORITIES[group],
        "versionPriority": _VERSION_PRIORITIES.get((group, version), _VERSION_PRIORITY),
    }
    return {"metadata": metadata, "spec": spec}
