"""What an agent is told when it starts."""

from dataclasses import dataclass, field
from pathlib import Path

from gpupool.agent.audit import Owner, owner_by_cgroup
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
    plugins: Path = KUBELET_DIRECTORY  # where the kubelet's socket is, and ours will be
    pod_resources: Path = POD_RESOURCES  # which devices containers hold; need not be there
    # Where those of pods are on the node.
    volumes: VolumePath = field(default_factory=lambda: kubelet_volumes(PODS))
    owner: Owner = owner_by_cgroup  # whose a process of the node is
    evicts: bool = False  # pods that hold more of a card than their share, for long
    audit_s: float = 5.0  # between looks at that
    unit_mib: int = MIB_PER_GIB  # one unit of gpu-mem
    whole_cards: bool = True  # False: another plugin of the node offers nvidia.com/gpu
    feature_labels: bool = False  # those of GPU feature discovery, too
    policy: XidPolicy = field(default_factory=load_policy)
    # What containers find of the node: the driver's files in all, the limiter in those that share
    # cards on a node with isolation.
    mounts: tuple[Mount, ...] = ()
    limiter: tuple[Mount, ...] = ()
    metrics_port: int | None = None  # on the loopback interface; 0: any
    look_s: float = 1.0  # between looks at the cards
