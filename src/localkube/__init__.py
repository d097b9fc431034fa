"""A Kubernetes cluster in one process: API server, controllers, a scheduler and nodes.

from localkube import Cluster

with Cluster(nodes=3) as cluster:
    print(cluster.kubectl("get", "nodes"))
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localkube.cluster import Cluster as Cluster
    from localkube.cluster import ClusterFailed as ClusterFailed

__version__ = "0.1.0"
KUBERNETES_VERSION = "v1.35.8"  # whose API is served


def __getattr__(name: str) -> object:
    """Loads the cluster when somebody asks for it: its parts import this package for the version,
    and tools that only read a data directory need no API server."""
    if name in ("Cluster", "ClusterFailed"):
        from localkube import cluster

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
