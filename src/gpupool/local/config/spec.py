"""What a cluster is made of: pools of nodes of some instance type. Values only, already checked.

A cluster file (cluster_file.py) is turned into these; everything else works from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network


class Role(StrEnum):
    CONTROL_PLANE = "control-plane"
    WORKER = "worker"


class NodeNaming(StrEnum):
    """How a node is named when the pool lists no name for it."""

    INSTANCE_ID = "instance-id"  # cn-beijing.i-2ze8o1a45qdv5q8a7luz
    ADDRESS = "address"  # cn-shanghai.192.168.7.157


@dataclass(frozen=True, slots=True)
class GpuModel:
    name: str  # as the driver says it: "Tesla M40"
    memory_mib: int  # as the driver shows it: 12209


@dataclass(frozen=True, slots=True)
class InstanceType:
    name: str
    vcpus: int
    memory_mib: int
    gpu: GpuModel | None = None
    gpu_count: int = 0
    gpu_driver: str = ""  # version of the simulated driver; empty: the usual one


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    name: str  # as a pool asks for it: "CentOS 7.x"
    image: str  # as the node reports it: "CentOS Linux 7 (Core)"
    kernel_version: str


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """The pool has between `minimum` and `maximum` nodes, depending on pending pods."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class PoolSpec:
    name: str
    count: int
    instance_type: InstanceType
    region: str
    zone: str
    os: OperatingSystem
    role: Role = Role.WORKER
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)  # of the machines, not of the nodes
    resource_group: str = ""
    managed: bool = False
    autoscaling: Autoscaling | None = None
    naming: NodeNaming = NodeNaming.INSTANCE_ID
    node_names: tuple[str, ...] = ()  # taken first, in this order; generated ones follow
    machines: tuple[
        str, ...
    ] = ()  # that exist; the nodes are these, with their names, and no other


@dataclass(frozen=True, slots=True)
class Network:
    nodes: IPv4Network
    pods: IPv4Network  # every node gets a /24 of it


@dataclass(frozen=True, slots=True)
class Quotas:
    """What the platform allows; each can be raised (quotas.py says how)."""

    clusters: int = 5
    nodes_per_cluster: int = 40
    routes_per_cluster: int = 48  # every node takes one route of the virtual network
    # Of all clusters together; cloud_use.py says what takes them.
    security_groups: int = 100
    load_balancers: int = 60
    eips: int = 20


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """What runs for an image."""

    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    directory: str = ""  # of this machine; containers of the image see it


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    region: str
    zone: str
    network: Network
    pools: tuple[PoolSpec, ...]
    quotas: Quotas = Quotas()  # the platform's, with what the cluster file changes
    # Every type that a pool of this cluster may name, also one made later with kubectl.
    instance_types: Mapping[str, InstanceType] = field(default_factory=dict)
    images: Mapping[str, ImageSpec] = field(default_factory=dict)  # by name, with or without tag
