"""The messages of the device-plugin API v1beta1 and of the pod-resources API v1.

The n-th attribute of a class is field n of its message. So the order of attributes is the wire
format: new ones may only be added at the end. Names are not on the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

API_VERSION = "v1beta1"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
MAX_DEVICE_ID = 63
# gRPC's default limit for one message; the kubelet does not change it.
MAX_MESSAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing to say."""


@dataclass(frozen=True, slots=True)
class DevicePluginOptions:
    pre_start_required: bool = False
    preferred_allocation_available: bool = False


@dataclass(frozen=True, slots=True)
class RegisterRequest:
    version: str = ""
    endpoint: str = ""  # name of the plugin's socket, beside the kubelet's
    resource_name: str = ""
    options: DevicePluginOptions | None = None


@dataclass(frozen=True, slots=True)
class NumaNode:
    id: int = 0


@dataclass(frozen=True, slots=True)
class TopologyInfo:
    nodes: tuple[NumaNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    id: str = ""
    health: str = ""
    topology: TopologyInfo | None = None


@dataclass(frozen=True, slots=True)
class ListAndWatchResponse:
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class PreStartContainerRequest:
    device_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreStartContainerResponse:
    """Nothing to say."""


@dataclass(frozen=True, slots=True)
class ContainerPreferredAllocationRequest:
    available: tuple[str, ...] = ()
    must_include: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True)
class PreferredAllocationRequest:
    containers: tuple[ContainerPreferredAllocationRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerPreferredAllocationResponse:
    device_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreferredAllocationResponse:
    containers: tuple[ContainerPreferredAllocationResponse, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerAllocateRequest:
    device_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocateRequest:
    containers: tuple[ContainerAllocateRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    container_path: str = ""
    host_path: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    container_path: str = ""
    host_path: str = ""
    permissions: str = ""  # of r, w and m


@dataclass(frozen=True, slots=True)
class CdiDevice:
    name: str = ""  # vendor.com/class=device


@dataclass(frozen=True, slots=True)
class ContainerAllocateResponse:
    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceSpec, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[CdiDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocateResponse:
    containers: tuple[ContainerAllocateResponse, ...] = ()


# Pod resources: which devices the containers of a node hold.


@dataclass(frozen=True, slots=True)
class ContainerDevices:
    resource_name: str = ""
    device_ids: tuple[str, ...] = ()
    topology: TopologyInfo | None = None


@dataclass(frozen=True, slots=True)
class ContainerResources:
    name: str = ""
    devices: tuple[ContainerDevices, ...] = ()
    cpu_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PodResources:
    name: str = ""
    namespace: str = ""
    containers: tuple[ContainerResources, ...] = ()


@dataclass(frozen=True, slots=True)
class ListPodResourcesResponse:
    pods: tuple[PodResources, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocatableResourcesResponse:
    devices: tuple[ContainerDevices, ...] = ()
    cpu_ids: tuple[int, ...] = ()
