"""The rules of each kind, by group and kind; those of events.k8s.io look at the stored form.

The kinds of resource.k8s.io, CSIDriver, CSINode, VolumeAttachment and IngressClass have no rules:
nothing here acts on them, so that they are stored as they were sent after the check of the schema.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubeclient.objects import Obj
from localkube.apiserver.validation import (
    admission_policies,
    api_services,
    apps,
    autoscaling,
    batch,
    certificates,
    claims,
    config,
    crds,
    endpoint_slices,
    endpoints,
    events,
    flow_control,
    job_status,
    networking,
    nodes,
    persistent_volumes,
    pod_status,
    pods,
    policy,
    quotas,
    rbac,
    replication_controllers,
    services,
    storage,
    webhooks,
)
from localkube.apiserver.validation.errors import Errors

Create = Callable[[Obj], Errors]
Update = Callable[[Obj, Obj], Errors]


_RBAC = "rbac.authorization.k8s.io"
_NETWORKING = "networking.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_STORAGE = "storage.k8s.io"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"


class Rules(NamedTuple):
    create: Create
    update: Update
    status: Update | None = None
    # Whether `create` looks at all metadata, so that nothing is left to the generic check.
    metadata: bool = True


RULES: Mapping[tuple[str, str], Rules] = {
    ("", "Pod"): Rules(pods.create, pods.update, pod_status.status_update),
    ("", "PodTemplate"): Rules(pods.create_template, pods.update_template),
    ("", "PersistentVolumeClaim"): Rules(claims.create, claims.update, claims.status_update),
    ("", "Service"): Rules(services.create, services.update, services.status_update),
    ("", "Endpoints"): Rules(endpoints.create, endpoints.update),
    ("", "Node"): Rules(nodes.create_node, nodes.update_node, nodes.node_status),
    ("", "Namespace"): Rules(
        nodes.create_namespace, nodes.update_namespace, nodes.namespace_status
    ),
    ("", "ConfigMap"): Rules(config.create_config_map, config.update_config_map),
    ("", "Secret"): Rules(config.create_secret, config.update_secret),
    ("", "ServiceAccount"): Rules(config.create_service_account, config.update_service_account),
    ("", "ResourceQuota"): Rules(quotas.create_quota, quotas.update_quota, quotas.quota_status),
    ("", "LimitRange"): Rules(quotas.create_limit_range, quotas.update_limit_range),
    ("", "ReplicationController"): Rules(
        replication_controllers.create,
        replication_controllers.update,
        apps.replica_set_status,
    ),
    ("apps", "Deployment"): Rules(
        apps.create_deployment, apps.update_deployment, apps.deployment_status
    ),
    ("apps", "ReplicaSet"): Rules(
        apps.create_replica_set, apps.update_replica_set, apps.replica_set_status
    ),
    ("apps", "StatefulSet"): Rules(
        apps.create_stateful_set, apps.update_stateful_set, apps.stateful_set_status
    ),
    ("apps", "DaemonSet"): Rules(
        apps.create_daemon_set, apps.update_daemon_set, apps.daemon_set_status
    ),
    ("apps", "ControllerRevision"): Rules(apps.create_revision, apps.update_revision),
    ("batch", "Job"): Rules(batch.create_job, batch.update_job, job_status.status_update),
    ("batch", "CronJob"): Rules(
        batch.create_cron_job, batch.update_cron_job, batch.cron_job_status
    ),
    ("", "PersistentVolume"): Rules(
        persistent_volumes.create, persistent_volumes.update, persistent_volumes.status_update
    ),
    ("", "Event"): Rules(events.create_core, events.update_core, metadata=False),
    ("events.k8s.io", "Event"): Rules(events.create_new, events.update_new),
    ("policy", "PodDisruptionBudget"): Rules(
        policy.create_budget, policy.update_budget, policy.budget_status, metadata=False
    ),
    ("scheduling.k8s.io", "PriorityClass"): Rules(policy.create_priority, policy.update_priority),
    ("coordination.k8s.io", "Lease"): Rules(policy.create_lease, policy.update_lease),
    ("node.k8s.io", "RuntimeClass"): Rules(
        policy.create_runtime_class, policy.update_runtime_class
    ),
    (_RBAC, "Role"): Rules(rbac.create_role, rbac.update_role),
    (_RBAC, "ClusterRole"): Rules(rbac.create_cluster_role, rbac.update_cluster_role),
    (_RBAC, "RoleBinding"): Rules(rbac.create_role_binding, rbac.update_role_binding),
    (_RBAC, "ClusterRoleBinding"): Rules(
        rbac.create_cluster_role_binding, rbac.update_cluster_role_binding
    ),
    ("discovery.k8s.io", "EndpointSlice"): Rules(
        endpoint_slices.create_slice, endpoint_slices.update_slice
    ),
    (_NETWORKING, "Ingress"): Rules(
        networking.create_ingress, networking.update_ingress, networking.ingress_status
    ),
    (_NETWORKING, "NetworkPolicy"): Rules(
        networking.create_network_policy, networking.update_network_policy
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(
        autoscaling.create, autoscaling.update, autoscaling.status_update
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): Rules(webhooks.create, webhooks.update),
    (_ADMISSION, "ValidatingWebhookConfiguration"): Rules(webhooks.create, webhooks.update),
    (_ADMISSION, "ValidatingAdmissionPolicy"): Rules(
        admission_policies.create_policy,
        admission_policies.update_policy,
        admission_policies.policy_status,
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): Rules(
        admission_policies.create_binding, admission_policies.update_binding
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Rules(
        crds.create, crds.update, crds.status_update
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): Rules(
        certificates.create, certificates.update, certificates.status_update, metadata=False
    ),
    ("apiregistration.k8s.io", "APIService"): Rules(
        api_services.create, api_services.update, api_services.status_update
    ),
    (_FLOW_CONTROL, "FlowSchema"): Rules(
        flow_control.create_schema, flow_control.update_schema, flow_control.schema_status
    ),
    (_FLOW_CONTROL, "PriorityLevelConfiguration"): Rules(
        flow_control.create_level, flow_control.update_level, flow_control.level_status
    ),
    (_STORAGE, "StorageClass"): Rules(storage.create_class, storage.update_class),
}
