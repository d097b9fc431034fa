"""`apply_defaults`: what an API server fills in before anything else looks at an object.

The object first takes the shape of its Go type (shape.py), so the functions of the table find
zero values gone and structs that are always there in place.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.defaults import (
    apps,
    autoscaling,
    batch,
    core_cluster,
    core_service,
    extensions,
    networking,
    pods,
    rbac,
    resource,
    shape,
    storage,
)
from localkube.apiserver.kinds import Kind

_ADMISSION = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"
_DRA = "resource.k8s.io/v1"
_FLOW = "flowcontrol.apiserver.k8s.io/v1"

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
    ("apiregistration.k8s.io/v1", "APIService"): extensions.api_service,
    ("networking.k8s.io/v1", "NetworkPolicy"): networking.network_policy,
    ("networking.k8s.io/v1", "IngressClass"): networking.ingress_class,
    ("discovery.k8s.io/v1", "EndpointSlice"): networking.endpoint_slice,
    (_RBAC, "RoleBinding"): rbac.role_binding,
    (_RBAC, "ClusterRoleBinding"): rbac.role_binding,
    (_DRA, "ResourceClaim"): resource.resource_claim,
    (_DRA, "ResourceClaimTemplate"): resource.resource_claim_template,
    (_DRA, "ResourceSlice"): resource.resource_slice,
    ("scheduling.k8s.io/v1", "PriorityClass"): storage.priority_class,
    ("storage.k8s.io/v1", "StorageClass"): storage.storage_class,
    ("storage.k8s.io/v1", "CSIDriver"): storage.csi_driver,
    ("storage.k8s.io/v1", "VolumeAttachment"): storage.volume_attachment,
    (_FLOW, "FlowSchema"): storage.flow_schema,
    (_FLOW, "PriorityLevelConfiguration"): storage.priority_level,
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
    return [owner for place, owner in enumerate(owners) if owner not in owners[:place]]


@cache
def _rules(api_version: str, kind: str) -> tuple[shape.Shape | None, Any]:
    return shape.shape_of(api_version, kind), DEFAULTS.get((api_version, kind))
