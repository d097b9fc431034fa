"""LocalSettings: the settings of one local cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.contract.names import API_GROUP
from gpupool.local.cloud_use import ServiceQuota
from gpupool.local.config.spec import ClusterSpec, Quotas
from gpupool.local.machines import ClusterMachines
from localkube.names import Names

# How localkube names what it writes for us: annotations, labels, entries in kubeconfigs.
NAMES = Names(product="gpupool", domain=API_GROUP)


@dataclass(frozen=True, slots=True)
class LocalSettings:
    name: str
    # The cluster's directory, the only place that it writes to. It exists with mode 0700, and the
    # caller holds its lock, so that no second server can run on it.
    data_dir: Path
    port: int  # of the API server on the loopback interface; 0 takes any free one
    spec: ClusterSpec
    # Returns the current quotas: people change them while the cluster runs.
    quotas: Callable[[], Quotas]
    # True on the first start, and when the cluster file has changed: the pools are made as `spec`
    # says. False: the pools stay as they are in the API server.
    apply_spec: bool = True
    # True: the first GPU node gets this machine's own cards.
    real_gpus: bool = False
    # Machines that exist, which pools can be made of.
    machines: ClusterMachines | None = None
    # The load balancers that Services may have.
    services: ServiceQuota | None = None
    # True: no container starts without a wall around it (docs/pods.md).
    wall_required: bool = False

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "kubeconfig"
