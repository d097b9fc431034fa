"""The messages of NRI v1alpha1 and of ttRPC, as far as we use them.

The n-th attribute of a class is field n of its message, unless `number` says another. What we do
not use is left out: unknown fields are skipped, and lost when a message is written again. So a
message that was read is never sent back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from kubeclient.wire import number

# -- ttRPC ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    service: str = ""
    method: str = ""
    payload: bytes = b""
    timeout_ns: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    code: int = 0  # as in gRPC; 0 is success
    message: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    status: Status | None = None
    payload: bytes = b""


# -- NRI: what a plugin is told ----------------------------------------------------------------


class Event(IntEnum):
    """A plugin asks for events with a mask: bit n - 1 stands for event n."""

    STOP_POD_SANDBOX = 2
    CREATE_CONTAINER = 4
    START_CONTAINER = 6  # the container is made, its program has not started
    STOP_CONTAINER = 10
    REMOVE_CONTAINER = 11


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing to say."""


@dataclass(frozen=True, slots=True)
class RegisterPluginRequest:
    plugin_name: str = ""
    plugin_idx: str = ""  # two digits; plugins are asked in this order


@dataclass(frozen=True, slots=True)
class ConfigureRequest:
    config: str = ""
    runtime_name: str = ""
    runtime_version: str = ""
    registration_timeout_ms: int = 0
    request_timeout_ms: int = 0


@dataclass(frozen=True, slots=True)
class ConfigureResponse:
    events: int = field(default=0, metadata=number(2))


@dataclass(frozen=True, slots=True)
class Mount:
    destination: str = ""  # in an adjustment: with "-" before it, the mount is taken away
    type: str = ""
    source: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSandbox:
    id: str = ""
    name: str = ""
    uid: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    runtime_handler: str = ""  # of the pod's runtime class; empty: the default


@dataclass(frozen=True, slots=True)
class Container:
    id: str = ""
    pod_sandbox_id: str = ""
    name: str = ""
    state: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # NAME=value
    mounts: tuple[Mount, ...] = ()
    pid: int = field(default=0, metadata=number(12))  # as the runtime sees it; 0: not made yet


@dataclass(frozen=True, slots=True)
class SynchronizeRequest:
    """Its pods and containers are not read: on a full node they are hundreds of kilobytes, and many
    times that as objects, whose memory Python keeps."""

    more: bool = field(default=False, metadata=number(3))  # further requests follow with the rest


@dataclass(frozen=True, slots=True)
class SynchronizeResponse:
    more: bool = field(default=False, metadata=number(2))


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """CreateContainer, StartContainer, StopContainer and RemoveContainer."""

    pod: PodSandbox = field(default_factory=PodSandbox)
    container: Container = field(default_factory=Container)


@dataclass(frozen=True, slots=True)
class StateChangeEvent:
    """How runtimes before NRI 0.11 tell of the last three."""

    event: int = 0
    pod: PodSandbox = field(default_factory=PodSandbox)
    container: Container = field(default_factory=Container)


# -- NRI: what a plugin answers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OptionalNumber:
    """OptionalInt, OptionalUInt32 and OptionalFileMode: a number that may also be missing."""

    value: int = 0


@dataclass(frozen=True, slots=True)
class KeyValue:
    key: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Hook:
    path: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout_s: OptionalNumber | None = None


@dataclass(frozen=True, slots=True)
class Hooks:
    prestart: tuple[Hook, ...] = ()
    create_runtime: tuple[Hook, ...] = ()
    create_container: tuple[Hook, ...] = ()
    start_container: tuple[Hook, ...] = ()
    poststart: tuple[Hook, ...] = ()
    poststop: tuple[Hook, ...] = ()


@dataclass(frozen=True, slots=True)
class LinuxDevice:
    path: str = ""
    type: str = ""  # c or b
    major: int = 0
    minor: int = 0
    file_mode: OptionalNumber | None = None
    uid: OptionalNumber | None = None
    gid: OptionalNumber | None = None


@dataclass(frozen=True, slots=True)
class LinuxContainerAdjustment:
    devices: tuple[LinuxDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerAdjustment:
    annotations: Mapping[str, str] = field(default_factory=dict, metadata=number(2))
    mounts: tuple[Mount, ...] = ()
    env: tuple[KeyValue, ...] = ()
    hooks: Hooks | None = None
    linux: LinuxContainerAdjustment | None = None


@dataclass(frozen=True, slots=True)
class CreateContainerResponse:
    adjust: ContainerAdjustment | None = None
