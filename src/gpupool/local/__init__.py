"""Local clusters: a localkube cluster with GPU nodes, node pools, images and gpupool's programs.

Of all of gpupool, only this package and `gpupool.testing` import localkube.
"""

DEFAULT_NAME = "default"  # of a cluster
