"""ContainerRun: one run of a container as a process, and PodRuns: all runs of a pod."""

import asyncio
import os
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
    """What a process needs in order to run in a container: its own program, or one of exec."""

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
    terminal: int | None = None  # descriptor, to set the terminal's size
    is_ours: bool = False  # a stand-in, not the program that the pod names
    killed_for: str = ""  # the reason for its status, if we kill it
    pre_stopped: bool = False
    stop_until: float = 0.0  # when SIGKILL comes, once there is a stopper
    stopper: asyncio.Task[None] | None = None
    prober: asyncio.Task[None] | None = None
    starter: asyncio.Task[None] | None = None  # while it runs the postStart hook

    @property
    def id(self) -> str:
        return self.inside.container_id

    @property
    def container(self) -> Container:
        return self.pod.containers[self.index]

    def close(self) -> None:
        """The program has ended, or could not be started. Takes what is left of its output, and
        closes its streams."""
        if self.stdin is not None:
            self.stdin.close()
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None
        self.output.finish()


@dataclass(slots=True, eq=False)
class PodRuns:
    """The runs of a pod, and what they share."""

    volumes: Volumes
    has_volumes: bool = False
    limits: PodLimits = NO_LIMITS
    runs: dict[int, ContainerRun] = field(default_factory=dict)
    starting: dict[int, asyncio.Task[Any]] = field(default_factory=dict)
    ports: dict[int, int] = field(
        default_factory=dict
    )  # a port of the pod -> the port on this machine
    said: set[str] = field(default_factory=set)  # texts of events that are recorded only once
    # For whoever writes into the pod's directory. `gone`: nobody may any more.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    gone: bool = False
    shown: object = None  # the metadata that the volumes show; None: there are no volumes yet
