"""FleetSettings: the settings of all nodes of a local cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localkube.kubelet.hosted import Hosted
from localkube.kubelet.images import KnownImages
from localkube.kubelet.lifecycle import RestartBackoff
from localkube.kubelet.node_hooks import NodeHooks, NoHooks
from localkube.names import Names

PROCESS, TIMER = "process", "timer"


@dataclass(frozen=True, slots=True)
class FleetSettings:
    directory: Path  # for the pods' files; made with mode 0700
    runtime: str = PROCESS  # unless the pod, its namespace or its node names another
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    lease_s: float = 10.0  # between two renewals of a node's lease
    status_s: float = 300.0  # between two posts of an unchanged node's status
    writers: int = 64  # workers that sync pods with the API
    refresh_s: float = 60.0  # between two looks at the objects that volumes show
    usage_s: float = 10.0  # between two looks at what pods with limits use
    log_bytes: int = 10 * 1024 * 1024  # of one log file, before it is moved aside
    log_files: int = 3  # of one run of a container
    host_paths: tuple[Path, ...] = ()  # the parts of this machine that pods may see by hostPath
    private: tuple[Path, ...] = ()  # never visible in containers, like the directory's parent
    # Python packages that containers may see besides localkube's own, with stand-ins in them.
    packages: tuple[Path, ...] = ()
    hooks: NodeHooks = field(default_factory=NoHooks)
    hosted: Mapping[str, Hosted] = field(default_factory=dict)  # image without tag -> task
    images: KnownImages = field(default_factory=KnownImages)
    names: Names = field(default_factory=Names)
    isolate: bool = True  # containers get their own view of the machine, if the kernel allows it
    # Where the kernel allows no wall around containers, none are started.
    wall_required: bool = False
