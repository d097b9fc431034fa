"""A Kubernetes cluster in one process: API server, controllers, a scheduler and nodes.

from localkube import Cluster

with Cluster(nodes=3) as cluster:
    print(cluster.kubectl("get", "nodes"))
"""

from typing import TYPE_CHECKING

from localkube.about import __version__ as __version__

if TYPE_CHECKING:
    from localkube.cluster import Cluster as Cluster
    from localkube.cluster import ClusterFailed as ClusterFailed


def __getattr__(name: str) -> object:
    """Loads the cluster when somebody asks for it: whoever needs only a part, such as the data
    directory, does not load the API server."""
    if name in ("Cluster", "ClusterFailed"):
        from localkube import cluster

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
