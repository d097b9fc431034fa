"""For users' own tests: a local cluster as a context manager, and as a pytest fixture.

    from gpupool.testing import Cluster

    with Cluster(pools=[{"name": "gpu", "instanceType": "ecs.gn6v-c8g1.2xlarge"}]) as cluster:
        cluster.kubectl("apply", "-f", "job.yaml")

The fixture `gpupool_cluster` (plugin.py) is one such cluster for a whole pytest session.
"""

from gpupool.testing.cluster import Cluster
from gpupool.testing.server import ClusterFailed

__all__ = ["Cluster", "ClusterFailed"]
