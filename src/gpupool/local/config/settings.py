"""LocalSettings: all that one local cluster needs to be told to run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.contract.names import API_GROUP
from gpupool.local.config.spec import ClusterSpec, Quotas
from localkube.names import Names

# How localkube names what it writes for us: annotations, labels, entries in kubeconfigs.
NAMES = Names(product="gpupool", domain=API_GROUP)


@dataclass(frozen=True, slots=True)
class LocalSettings:
    name: str
    # The cluster's own directory, and the only place that it writes to. Exists, mode 0700, and
    # is locked by the caller: no second server can run on it.
    data_dir: Path
    port: int  # of the API server on the loopback interface; 0 takes any free one
    spec: ClusterSpec
    # The quotas as they are now: people raise them while the cluster runs.
    quotas: Callable[[], Quotas]
    # True on the first start, and when the cluster file has changed: make the pools of `spec`
    # what it says. False: the pools live on as the API server has them.
    apply_spec: bool = True
    # True: this machine's own cards, on the first node that should have some.
    real_gpus: bool = False

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "kubeconfig"
