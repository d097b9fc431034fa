"""`apply_defaults`: what an API server fills in before anything else looks at an object.

The object first takes the shape of its Go type (shape.py), so the functions of the table find
zero values gone and structs that are always there in place.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.defaults import (
    api_machinery,
    apps,
    autoscaling,
    batch,
    core_cluster,
    core_service,
    extensions,
    pods,
    shape,
)
from localkube.apiserver.kinds import Kind

_ADMISSION = "admissionregistration.k8s.io/v1"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io/v1"
_RBAC_GROUP = "rbac.authorization.k8s.io"
_RBAC = f"{_RBAC_GROUP}/v1"

# Kinds with one or two defaults.


def _role_binding(value: Obj) -> None:
    if not value["roleRef"]["apiGroup"]:
        value["roleRef"]["apiGroup"] = _RBAC_GROUP
    for subject in value.get("subjects", ()):
        if subject["kind"] in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC_GROUP)


def _network_policy(value: Obj) -> None:
    spec: Obj = value["spec"]
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction, ()):
            for port in rule.get("ports", ()):
                port.setdefault("protocol", "TCP")


def _endpoint_slice(value: Obj) -> None:
    for port in value.get("ports", ()):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _storage_class(value: Obj) -> None:
    value.setdefault("reclaimPolicy", "Delete")
    value.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(value: Obj) -> None:
    spec: Obj = value["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


def _priority_class(value: Obj) -> None:
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")


DEFAULTS: Mapping[tuple[str, str], Callable[[Obj], None]] = {
    ("v1", "Pod"): pods.pod,
    ("v1", "PodTemplate"): core_cluster.pod_template_object,
    ("v1", "ReplicationController"): core_cluster.replication_controller,
    ("v1", "Service"): core_service.service,
    ("v1", "Endpoints"): core_service.endpoints,
    ("v1", "Namespace"): core_cluster.namespace,
    ("v1", "Node"): core_cluster.node,
    ("v1", "Secret"): core_cluster.secret,
    ("v1", "LimitRange"): core_cluster.limit_range,
    ("v1", "PersistentVolume"): core_cluster.persistent_volume,
    ("v1", "PersistentVolumeClaim"): core_cluster.persistent_volume_claim,
    ("apps/v1", "Deployment"): apps.deployment,
    ("apps/v1", "DaemonSet"): apps.daemon_set,
    ("apps/v1", "StatefulSet"): apps.stateful_set,
    ("apps/v1", "ReplicaSet"): apps.replica_set,
    ("batch/v1", "Job"): batch.job,
    ("batch/v1", "CronJob"): batch.cron_job,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): autoscaling.autoscaler_v1,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): autoscaling.autoscaler_v2,
    (_ADMISSION, "MutatingWebhookConfiguration"): extensions.mutating_webhooks,
    (_ADMISSION, "ValidatingWebhookConfiguration"): extensions.validating_webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): extensions.admission_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): extensions.admission_policy_binding,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): extensions.custom_resource_definition,
    ("apiregistration.k8s.io/v1", "APIService"): api_machinery.api_service,
    (_FLOW_CONTROL, "FlowSchema"): api_machinery.flow_schema,
    (_FLOW_CONTROL, "PriorityLevelConfiguration"): api_machinery.priority_level,
    ("networking.k8s.io/v1", "NetworkPolicy"): _network_policy,
    ("discovery.k8s.io/v1", "EndpointSlice"): _endpoint_slice,
    (_RBAC, "RoleBinding"): _role_binding,
    (_RBAC, "ClusterRoleBinding"): _role_binding,
    ("scheduling.k8s.io/v1", "PriorityClass"): _priority_class,
    ("storage.k8s.io/v1", "StorageClass"): _storage_class,
    ("storage.k8s.io/v1", "CSIDriver"): _csi_driver,
}


def apply_defaults(obj: Obj, kind: Kind) -> None:
    """Changes `obj` in place. Expects an object whose types were checked, without nulls."""
    owners = obj.get("metadata", {}).get("ownerReferences")
    if owners and len(owners) > 1:
        obj["metadata"]["ownerReferences"] = _without_repetition(owners)
    known, default = _rules(kind.api_version, kind.kind)
    if kind.custom or known is None:
        shape.normalise(obj.setdefault("metadata", {}), shape.named(shape.METADATA))
        return
    shape.normalise(obj, known)
    if default is not None:
        default(obj)


def _without_repetition(owners: list[Obj]) -> list[Obj]:
    known: dict[bytes, Obj] = {}
    for owner in owners:
        known.setdefault(orjson.dumps(owner, option=orjson.OPT_SORT_KEYS), owner)
    return list(known.values())


@cache
def _rules(api_version: str, kind: str) -> tuple[shape.Shape | None, Any]:
    return shape.shape_of(api_version, kind), DEFAULTS.get((api_version, kind))
