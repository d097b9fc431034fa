"""FleetSettings: all that the nodes of a local cluster need to be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localkube.kubelet.hosted import Program
from localkube.kubelet.images import KnownImages
from localkube.kubelet.lifecycle import RestartBackoff
from localkube.kubelet.node_hooks import NodeHooks, NoHooks
from localkube.names import Names

PROCESS, TIMER = "process", "timer"


@dataclass(frozen=True, slots=True)
class FleetSettings:
    directory: Path  # for the pods' files; made with mode 0700
    runtime: str = PROCESS  # where neither pod, nor namespace, nor node says another
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    lease_s: float = 10.0  # between two renewals of a node's lease
    status_s: float = 300.0  # between two posts of an unchanged node's status
    writers: int = 64  # pods that are written to the API at a time
    refresh_s: float = 60.0  # between two looks at the objects that volumes show
    usage_s: float = 10.0  # between two looks at what pods with limits use
    log_bytes: int = 10 * 1024 * 1024  # of one log file, before it is moved aside
    log_files: int = 3  # of one run of a container
    host_paths: tuple[Path, ...] = ()  # the parts of this machine that pods may see by hostPath
    private: tuple[Path, ...] = ()  # what no container sees, beside the directory's parent
    # Packages of Python that containers may see, beside localkube's own: stand-ins live there.
    packages: tuple[Path, ...] = ()
    hooks: NodeHooks = field(default_factory=NoHooks)
    hosted: Mapping[str, Program] = field(default_factory=dict)  # image without tag -> task
    images: KnownImages = field(default_factory=KnownImages)
    names: Names = field(default_factory=Names)
    isolate: bool = True  # containers get a view of the machine of their own, where that works
