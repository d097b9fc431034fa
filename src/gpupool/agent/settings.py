"""The settings of an agent."""

from dataclasses import dataclass, field
from pathlib import Path

from gpupool.agent.covered import MountsOf, mounts_of
from gpupool.agent.endpoint import Serve
from gpupool.agent.injection import NriPlace
from gpupool.agent.limiter import LimiterPlace
from gpupool.agent.owners import Owner, container_by_cgroup, owner_by_cgroup
from gpupool.agent.pod_files import VolumePath, kubelet_volumes
from gpupool.agent.xid_policy import XidPolicy, load_policy
from gpupool.core.gpu import MIB_PER_GIB
from kubeclient.kubeletapi.messages import Mount

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
    evicts: bool = False  # True: pods that exceed their share for long are evicted
    audit_s: float = 5.0  # between two audits of that
    # What one unit of the resource aliyun.com/gpu-mem is. A pod asks for units; a card has as many
    # as fit into its memory. A GiB unless the installation chooses otherwise.
    unit_mib: int = MIB_PER_GIB
    whole_cards: bool = True  # False: another plugin of the node offers nvidia.com/gpu
    feature_labels: bool = False  # True: also the labels of NVIDIA's GPU feature discovery
    policy: XidPolicy = field(default_factory=load_policy)
    # What is mounted into containers: `mounts` into all with GPUs, `limiter` only into those that
    # share cards on a node with isolation.
    mounts: tuple[Mount, ...] = ()
    limiter: tuple[Mount, ...] = ()
    install: LimiterPlace | None = None  # where to install the limiter, to be mounted like those
    nri: NriPlace | None = (
        None  # where the agent itself puts cards into containers; None: it does not
    )
    serve: Serve | None = None  # where the HTTP endpoint is; None: nowhere
    install_again_s: float = 300.0  # until the next try, if the limiter is not as it should be
    look_s: float = 1.0  # between two readings of the cards
