"""Is this object as its kind wants it? One table of rules, three questions.

Objects come complete: defaults applied, name, uid and timestamps set. The order of checks, and
which of them run twice on an update, follow the API server, because clients see the list.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.defaults.convert import to_storage
from gpupool.localcluster.apiserver.kinds import Kind
from gpupool.localcluster.apiserver.validation import (
    apps,
    batch,
    claims,
    config,
    endpoints,
    job_status,
    nodes,
    pod_status,
    pods,
    quotas,
    services,
)
from gpupool.localcluster.apiserver.validation.errors import Errors
from gpupool.localcluster.apiserver.validation.formats import dns_subdomain
from gpupool.localcluster.apiserver.validation.metadata import (
    generic_meta,
    object_meta,
    object_meta_update,
)

Create = Callable[[Obj], Errors]
Update = Callable[[Obj, Obj], Errors]


class Rules(NamedTuple):
    create: Create
    update: Update
    status: Update | None = None


RULES: Mapping[tuple[str, str], Rules] = {
    ("", "Pod"): Rules(pods.create, pods.update, pod_status.status_update),
    ("", "PodTemplate"): Rules(pods.create_template, pods.update_template),
    ("", "PersistentVolumeClaim"): Rules(claims.create, claims.update, claims.status_update),
    ("", "Service"): Rules(services.create, services.update, services.status_update),
    ("", "Endpoints"): Rules(endpoints.create, endpoints.update),
    ("", "Node"): Rules(nodes.create_node, nodes.update_node, nodes.update_node),
    ("", "Namespace"): Rules(
        nodes.create_namespace, nodes.update_namespace, nodes.namespace_status
    ),
    ("", "ConfigMap"): Rules(config.create_config_map, config.update_config_map),
    ("", "Secret"): Rules(config.create_secret, config.update_secret),
    ("", "ServiceAccount"): Rules(config.create_service_account, config.update_service_account),
    ("", "ResourceQuota"): Rules(quotas.create_quota, quotas.update_quota, quotas.quota_status),
    ("", "LimitRange"): Rules(quotas.create_limit_range, quotas.update_limit_range),
    ("", "ReplicationController"): Rules(
        apps.create_replication_controller,
        apps.update_replication_controller,
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
}


def validate_create(obj: Obj, kind: Kind) -> Errors:
    errors: Errors = []
    rules = RULES.get((kind.group, kind.kind))
    if kind.custom:
        object_meta(errors, obj["metadata"], dns_subdomain, namespaced=kind.namespaced)
    elif rules is not None:
        errors = rules.create(to_storage(obj, kind))
    # What its kind says of a name is more to the point than what every object must fulfil.
    if not errors:
        generic_meta(errors, obj["metadata"], namespaced=kind.namespaced)
    return errors


def validate_update(new: Obj, old: Obj, kind: Kind) -> Errors:
    errors = _common_update(new, old, kind)
    rules = RULES.get((kind.group, kind.kind))
    if kind.custom:
        object_meta_update(errors, new["metadata"], old["metadata"])
    elif rules is not None:
        errors += rules.update(to_storage(new, kind), to_storage(old, kind))
    return errors


def validate_status_update(new: Obj, old: Obj, kind: Kind) -> Errors:
    errors = _common_update(new, old, kind)
    rules = RULES.get((kind.group, kind.kind))
    if rules is not None and not kind.custom:
        if rules.status is not None:
            errors += rules.status(to_storage(new, kind), to_storage(old, kind))
        else:
            object_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def _common_update(new: Obj, old: Obj, kind: Kind) -> Errors:
    errors: Errors = []
    generic_meta(errors, new["metadata"], namespaced=kind.namespaced)
    object_meta_update(errors, new["metadata"], old["metadata"])
    return errors
