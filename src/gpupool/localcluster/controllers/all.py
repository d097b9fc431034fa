"""Every controller of the local cluster."""

from collections.abc import Callable

from gpupool.localcluster.config.nodes import Versions
from gpupool.localcluster.config.spec import ClusterSpec, Quotas
from gpupool.localcluster.controllers import (
    crd_cleanup,
    deployment,
    disruption,
    endpoints,
    endpoints_removal,
    event_expiry,
    namespace,
    node_lifecycle,
    node_pool,
    replica_set,
    service_account,
)
from gpupool.localcluster.controllers.run import Controller


def cluster_controllers(
    ca_pem: str, spec: ClusterSpec, versions: Versions, quotas: Callable[[], Quotas]
) -> list[Controller]:
    return [
        namespace.CONTROLLER,
        service_account.controller(ca_pem),
        deployment.CONTROLLER,
        replica_set.controller(),
        endpoints.CONTROLLER,
        endpoints_removal.CONTROLLER,
        disruption.CONTROLLER,
        event_expiry.CONTROLLER,
        crd_cleanup.CONTROLLER,
        node_lifecycle.CONTROLLER,
        node_pool.controller(spec, versions, quotas),
    ]
