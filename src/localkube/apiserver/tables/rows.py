"""Which function prints which resource, by "group/plural"."""

from collections.abc import Callable
from typing import Any, TypeAlias

from kubeclient.objects import Obj
from localkube.apiserver.tables import (
    api_machinery,
    autoscaling,
    clusters,
    networks,
    pods,
    policies,
    volumes,
    workloads,
)

Cells: TypeAlias = Callable[[Obj, float], list[Any]]

ROWS: dict[str, Cells] = {
    "/configmaps": clusters.config_map,
    "/endpoints": networks.endpoints,
    "/events": clusters.event,
    "/namespaces": clusters.namespace,
    "/nodes": clusters.node,
    "/persistentvolumeclaims": volumes.persistent_volume_claim,
    "/persistentvolumes": volumes.persistent_volume,
    "/pods": pods.pod_cells,
    "/podtemplates": workloads.pod_template,
    "/replicationcontrollers": workloads.replication_controller,
    "/resourcequotas": clusters.resource_quota,
    "/secrets": clusters.secret,
    "/serviceaccounts": clusters.name_and_age,
    "/services": networks.service,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": policies.webhook_configuration,
    "admissionregistration.k8s.io/validatingadmissionpolicies": policies.admission_policy,
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": (
        policies.admission_policy_binding
    ),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": policies.webhook_configuration,
    "apiregistration.k8s.io/apiservices": api_machinery.api_service,
    "apps/controllerrevisions": workloads.controller_revision,
    "apps/daemonsets": workloads.daemon_set,
    "apps/deployments": workloads.deployment,
    "apps/replicasets": workloads.replica_set,
    "apps/statefulsets": workloads.stateful_set,
    "autoscaling/horizontalpodautoscalers": autoscaling.horizontal_pod_autoscaler,
    "autoscaling/scales": autoscaling.scale,
    "batch/cronjobs": workloads.cron_job,
    "batch/jobs": workloads.job,
    "certificates.k8s.io/certificatesigningrequests": api_machinery.signing_request,
    "coordination.k8s.io/leases": clusters.lease,
    "discovery.k8s.io/endpointslices": networks.endpoint_slice,
    "events.k8s.io/events": clusters.event,
    "flowcontrol.apiserver.k8s.io/flowschemas": api_machinery.flow_schema,
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": api_machinery.priority_level,
    "networking.k8s.io/ingressclasses": networks.ingress_class,
    "networking.k8s.io/ingresses": networks.ingress,
    "networking.k8s.io/networkpolicies": networks.network_policy,
    "node.k8s.io/runtimeclasses": clusters.runtime_class,
    "policy/poddisruptionbudgets": clusters.disruption_budget,
    "rbac.authorization.k8s.io/clusterrolebindings": policies.role_binding,
    "rbac.authorization.k8s.io/rolebindings": policies.role_binding,
    "resource.k8s.io/deviceclasses": clusters.name_and_age,
    "resource.k8s.io/resourceclaims": policies.resource_claim,
    "resource.k8s.io/resourceclaimtemplates": clusters.name_and_age,
    "resource.k8s.io/resourceslices": policies.resource_slice,
    "scheduling.k8s.io/priorityclasses": clusters.priority_class,
    "storage.k8s.io/csidrivers": volumes.csi_driver,
    "storage.k8s.io/csinodes": volumes.csi_node,
    "storage.k8s.io/storageclasses": volumes.storage_class_row,
    "storage.k8s.io/volumeattachments": volumes.volume_attachment,
}

# Lists in another order than by name.
ORDER: dict[str, Callable[[Obj], Any]] = {
    "flowcontrol.apiserver.k8s.io/flowschemas": api_machinery.flow_schema_order,
}


def created_at(thing: Obj, now_s: float) -> list[Any]:
    """For kinds without a printer of their own: name and age."""
    metadata = thing["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"]
