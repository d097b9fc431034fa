"""The RBAC roles of gpupool's programs in a local cluster. The chart gives them the same rights."""

from kubeclient.objects import Obj
from localkube.apiserver.security.bootstrap_roles import (
    cluster_binding,
    cluster_role,
    system_role,
)
from localkube.apiserver.security.bootstrap_rules import EVENTS, READ, rule

_REGISTRATION = "admissionregistration.k8s.io"
_WEBHOOKS = "mutatingwebhookconfigurations validatingwebhookconfigurations"

ROLES: dict[str, tuple[Obj, ...]] = {
    # On every GPU node: publishes which cards there are, and who uses them.
    "gpupool:agent": (
        rule("get list watch patch", "core", "nodes"),
        rule("patch", "core", "nodes/status"),
        rule(READ, "core", "pods"),
        rule("create", "core", "pods/eviction"),  # of pods that exceed their share
        rule("list", "node.k8s.io", "runtimeclasses"),  # which bring cards into containers
        EVENTS,
    ),
    # Binds with the allocation as annotations of the Binding; never writes a pod otherwise.
    "gpupool:scheduler": (
        rule(READ, "core", "namespaces nodes persistentvolumeclaims persistentvolumes services"),
        rule(READ, "core", "resourcequotas"),
        rule("delete get list watch", "core", "pods"),
        rule("create", "core", "pods/binding pods/eviction"),
        rule("patch update", "core", "pods/status"),
        rule(READ, "apps", "replicasets statefulsets"),
        rule(READ, "policy", "poddisruptionbudgets"),
        rule(READ, "scheduling.k8s.io", "priorityclasses"),
        rule(READ, "storage.k8s.io", "csinodes storageclasses"),
        rule(READ, "gpupool.io", "nodepools"),
        rule("create", "coordination.k8s.io", "leases"),
        rule("get list update watch", "coordination.k8s.io", "leases", "gpupool-scheduler"),
        EVENTS,
    ),
    # Reads nodes for their cards, and registers itself; its Secret is in kube-system.
    "gpupool:admission": (
        rule(READ, "core", "nodes"),
        rule("create", _REGISTRATION, _WEBHOOKS),
        rule("get patch update", _REGISTRATION, _WEBHOOKS, "gpupool-admission"),
    ),
    # Reads who holds which cards; asks the agents in kube-system what they do.
    "gpupool:history": (rule(READ, "core", "nodes pods"),),
}

_SUBJECTS = {
    "gpupool:admission": ("ServiceAccount gpupool-admission kube-system",),
    "gpupool:agent": ("ServiceAccount gpupool-agent kube-system",),
    "gpupool:history": ("ServiceAccount gpupool-history kube-system",),
    "gpupool:scheduler": (
        "User system:kube-scheduler",
        "ServiceAccount gpupool-scheduler kube-system",
    ),
}
_ADMISSION_SECRET = (
    rule("create", "core", "secrets"),
    rule("get update", "core", "secrets", "gpupool-admission"),
)
_HISTORY_READINGS = (rule("create get", "core", "pods/portforward"),)


def role_objects() -> list[Obj]:
    """Roles before the bindings that name them."""
    admission, history = "gpupool:admission", "gpupool:history"
    return [
        *(cluster_role(name, rules) for name, rules in ROLES.items()),
        *system_role(admission, _ADMISSION_SECRET, admission, _SUBJECTS[admission]),
        *system_role(history, _HISTORY_READINGS, history, _SUBJECTS[history]),
        *(cluster_binding(name, subjects) for name, subjects in _SUBJECTS.items()),
    ]
