"""read_cluster: the cluster as it is now, once, for whoever only wants to know."""

from gpupool.engine.policies import DEFAULT
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.follow import handlers_of
from kubeclient.client import Kube
from kubeclient.lease import seconds_since_boot


async def read_cluster(kube: Kube, policy: str = DEFAULT) -> ClusterState:
    """Raises KubeError."""
    state = ClusterState((), policy, lambda: None, seconds_since_boot)
    for resource, handler in handlers_of(state).items():
        for obj in (await kube.list(resource)).items:
            handler(None, obj)
    return state
