"""ContainerRun: one run of a container as a process."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kubeclient.objects import Obj
from localkube.kubelet.container_files import ContainerFiles
from localkube.kubelet.descriptors import Writer
from localkube.kubelet.limits import NO_LIMITS, PodLimits
from localkube.kubelet.output import Output
from localkube.kubelet.sandbox import View
from localkube.kubelet.state import Container, Pod
from localkube.kubelet.volumes import Volumes


class Inside(NamedTuple):
    """What a program needs to run in a container."""

    container_id: str
    env: dict[str, str]
    cwd: str
    view: View | None


@dataclass(slots=True, eq=False)
class ContainerRun:
    pod: Pod
    index: int
    spec: Obj  # the container's
    inside: Inside
    files: ContainerFiles
    output: Output
    exited: asyncio.Future[int]
    pid: int = 0
    stdin: Writer | None = None
    terminal: int | None = None  # to set its size
    is_ours: bool = False  # not a program that the pod names, but one in its place
    killed_for: str = ""  # the reason that its end is given
    pre_stopped: bool = False
    stopper: asyncio.Task[None] | None = None
    prober: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self.inside.container_id

    @property
    def container(self) -> Container:
        return self.pod.containers[self.index]


@dataclass(slots=True, eq=False)
class PodRuns:
    """What runs of a pod, and around it."""

    volumes: Volumes
    has_volumes: bool = False
    limits: PodLimits = NO_LIMITS
    runs: dict[int, ContainerRun] = field(default_factory=dict)
    starting: dict[int, asyncio.Task[Any]] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)  # the pod's -> where it really listens
    said: set[str] = field(default_factory=set)  # events that are not repeated
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    shown: object = None  # of the pod's metadata, in its volumes; None: there are none yet
