"""The settings of an agent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpupool.agent.covered import MountsOf, mounts_of
from gpupool.agent.endpoint import Serve
from gpupool.agent.limiter import LimiterPlace
from gpupool.agent.missing_cards import PidsOf
from gpupool.agent.owners import Owner, container_by_cgroup, owner_by_cgroup
from gpupool.agent.pod_files import VolumePath, kubelet_volumes
from gpupool.agent.walls import Walls
from gpupool.agent.way_facts import OwnDriver
from gpupool.agent.xid_policy import XidPolicy, load_policy
from gpupool.core.gpu import MIB_PER_GIB
from gpupool.core.ways import Way
from gpupool.hardware.cdi import Specs
from kubeclient.kubeletapi.messages import Mount

if TYPE_CHECKING:
    from gpupool.health import Address

KUBELET_DIRECTORY = Path("/var/lib/kubelet/device-plugins")
POD_RESOURCES = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
PODS = Path("/var/lib/kubelet/pods")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    node: str
    plugins: Path = KUBELET_DIRECTORY  # the directory of the kubelet's socket and of ours
    pod_resources: Path = POD_RESOURCES  # the kubelet's PodResources socket; need not exist
    # Where the volumes of pods are on the node.
    volumes: VolumePath = field(default_factory=lambda: kubelet_volumes(PODS))
    owner: Owner = owner_by_cgroup  # which pod a process of the node belongs to
    mountinfo: MountsOf = mounts_of  # the mounts that a process of the node sees
    container: Owner = container_by_cgroup  # which container; need not know it
    pids: PidsOf | None = None  # the processes of containers; None: nobody looks for missing cards
    evicts: bool = False  # True: pods that exceed their share for long are evicted
    audit_s: float = 5.0  # between two audits of that
    # What one unit of the resource aliyun.com/gpu-mem is. A pod asks for units; a card has as many
    # as fit into its memory. A GiB unless the installation chooses otherwise.
    unit_mib: int = MIB_PER_GIB
    whole_cards: bool = True  # False: another plugin of the node offers nvidia.com/gpu
    # Labels of other programs to set on the node while it has cards, such as those by which the GPU
    # Operator keeps its device plugin off.
    switches: Mapping[str, str] = field(default_factory=dict)
    feature_labels: bool = False  # True: also the labels of NVIDIA's GPU feature discovery
    policy: XidPolicy = field(default_factory=load_policy)
    # What is mounted into containers: `mounts` into all with GPUs, `limiter` only into those that
    # share cards on a node with isolation.
    mounts: tuple[Mount, ...] = ()
    limiter: tuple[Mount, ...] = ()
    install: LimiterPlace | None = None  # where to install the limiter, to be mounted like those
    way: Way | None = None  # how cards get into containers; None: the agent finds out
    own_driver: OwnDriver | None = None  # how its own container asked for the driver, if it did
    # One of these is in every container with a card, where others put it in; none: not known, as of
    # simulated cards.
    control_devices: tuple[str, ...] = ()
    nri: Path | None = None  # the runtime's socket, through which the agent can put cards in
    nri_only_checks: bool = False  # True: it puts none in, and looks whether others did
    cdi: Specs = field(default_factory=Specs)  # what the CDI files of the node say about cards
    serve: Serve | None = None  # where the HTTP endpoint is; None: nowhere
    scrapers: "Address | None" = (
        None  # where scrapers of the cluster ask, over HTTPS; None: nowhere
    )
    walls: Walls | None = None  # what sets memory limits of the driver; None: they are not used
    install_again_s: float = 300.0  # until the next try, if the limiter is not as it should be
    sample_s: float = 10.0  # between two samples of what containers do with cards
    look_s: float = 1.0  # between two readings of the cards
