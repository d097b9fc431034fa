"""Every controller of the local cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.localcluster.config.nodes import Versions
from gpupool.localcluster.config.spec import ClusterSpec, Quotas
from gpupool.localcluster.controllers import (
    autoscaler,
    crd_cleanup,
    cron_job,
    daemon_set,
    deployment,
    disruption,
    endpoints,
    endpoints_removal,
    event_expiry,
    job,
    job_ttl,
    load_balancer,
    namespace,
    node_lifecycle,
    node_pool,
    pod_garbage,
    pool_autoscaler,
    replica_set,
    service_account,
    stateful_set,
    volume_claims,
)
from gpupool.localcluster.controllers.load_balancer import Dial
from gpupool.localcluster.controllers.run import Controller


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the controllers are told of the cluster that they run in."""

    ca_pem: str
    spec: ClusterSpec
    versions: Versions
    quotas: Callable[[], Quotas]  # as they are now
    volumes: Path  # a directory for the volumes of claims
    dial: Dial


def cluster_controllers(around: Surroundings) -> list[Controller]:
    spec, versions = around.spec, around.versions
    return [
        namespace.CONTROLLER,
        service_account.controller(around.ca_pem),
        deployment.controller(),
        *replica_set.controllers(),
        stateful_set.controller(),
        daemon_set.controller(),
        job.controller(),
        job_ttl.CONTROLLER,
        cron_job.CONTROLLER,
        autoscaler.controller(),
        endpoints.CONTROLLER,
        endpoints_removal.CONTROLLER,
        disruption.CONTROLLER,
        event_expiry.CONTROLLER,
        crd_cleanup.CONTROLLER,
        node_lifecycle.CONTROLLER,
        pod_garbage.CONTROLLER,
        node_pool.controller(spec, versions, around.quotas),
        pool_autoscaler.controller(spec, versions),
        load_balancer.controller(around.dial),
        volume_claims.controller(around.volumes),
        volume_claims.reclaimer(around.volumes),
    ]
