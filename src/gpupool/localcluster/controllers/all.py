"""Every controller of the local cluster."""

from gpupool.localcluster.config.nodes import Versions
from gpupool.localcluster.config.spec import ClusterSpec
from gpupool.localcluster.controllers import deployment, namespace, replica_set, service_account
from gpupool.localcluster.controllers.run import Controller


def cluster_controllers(ca_pem: str, spec: ClusterSpec, versions: Versions) -> list[Controller]:
    return [
        namespace.CONTROLLER,
        service_account.controller(ca_pem),
        deployment.CONTROLLER,
        replica_set.controller(),
    ]
