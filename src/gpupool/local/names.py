"""How local clusters of gpupool are called in annotations, labels and kubeconfigs."""

from gpupool.contract.names import API_GROUP
from localkube.names import Names

NAMES = Names(product="gpupool", domain=API_GROUP)
