"""FleetSettings: all that the nodes of a local cluster need to be told."""

from dataclasses import dataclass, field
from pathlib import Path

from gpupool.localcluster.kubelet.lifecycle import Backoff

PROCESS, TIMER = "process", "timer"


@dataclass(frozen=True, slots=True)
class FleetSettings:
    directory: Path  # for the pods' files; made with mode 0700
    runtime: str = PROCESS  # where neither pod, nor namespace, nor node says another
    backoff: Backoff = field(default_factory=Backoff)
    lease_s: float = 10.0  # between two renewals of a node's lease
    status_s: float = 300.0  # between two posts of an unchanged node's status
    writers: int = 64  # pods that are written to the API at a time
