"""GPU nodes, node pools, images and the programs of gpupool, put into a localkube cluster.

Of all of gpupool, only this package and `gpupool.testing` import localkube.
"""

DEFAULT_NAME = "default"  # of a cluster
