"""What the kubelet remembers of its pods: small records, no parsed objects.

Tens of thousands of them live at a time, so they are structs that the garbage collector need not
look into. A container goes

    WAITING -> STARTING -> RUNNING -> EXITED -> STARTING ...
                  |                     ^
                  +-- could not start --+-- or back to WAITING, with a `problem`

Who moves it on: lifecycle.py says what should happen next, a runtime does it and reports back.
"""

from enum import IntEnum

import msgspec


class Role(IntEnum):
    INIT = 0
    SIDECAR = 1  # an init container that keeps running
    MAIN = 2
    EPHEMERAL = 3


class Stage(IntEnum):
    WAITING = 0
    STARTING = 1
    RUNNING = 2
    EXITED = 3


# The lists of a pod's spec, by the role of the containers in them.
SPEC_LISTS = {
    Role.INIT: "initContainers",
    Role.SIDECAR: "initContainers",
    Role.MAIN: "containers",
    Role.EPHEMERAL: "ephemeralContainers",
}

# What comes before the id of a container or image in a pod's status, as with any runtime.
ID_SCHEME = "localkube://"


class Exit(msgspec.Struct, frozen=True, gc=False):
    code: int
    reason: str
    message: str
    started_at: float
    finished_at: float
    container_id: str


class Problem(msgspec.Struct, frozen=True, gc=False):
    """Why something does not go on, in the words that the status shows."""

    reason: str
    message: str


class Container(msgspec.Struct, gc=False):
    name: str
    role: Role
    restart: str  # Always, OnFailure or Never: its own, or else the pod's
    stage: Stage = Stage.WAITING
    problem: Problem | None = None  # why it waits, when that is more than "being created"
    container_id: str = ""  # of the latest run
    started_at: float = 0.0
    exit: Exit | None = None  # of the latest run, once it is over
    before: Exit | None = None  # of the run before
    restart_count: int = 0
    started: bool = False  # the start-up probe has passed
    ready: bool = False
    stopping: bool = False  # asked to stop
    unhealthy: bool = False  # a probe wants it killed, and then restarted
    backoff_s: float = 0.0
    backoff_at: float = 0.0


class Stop(msgspec.Struct, frozen=True, gc=False):
    """The whole pod is to end."""

    began_at: float
    grace_s: float
    verdict: Problem | None = None  # reason and message of the pod's status; None: deleted


class Pod(msgspec.Struct, gc=False):
    uid: str
    namespace: str
    name: str
    node: str
    runtime: str
    containers: tuple[Container, ...]
    start_time: float
    requests: dict[str, int]
    ip: str = ""
    generation: int = 0
    initialized: bool = False  # init containers are through; they are not looked at again
    prepared: bool = False  # network and volumes are there
    stop: Stop | None = None
    admitted: bool = True  # False: has yet to be given its devices
    rejected: Problem | None = None  # not admitted, and never will be
    version: int = 0  # resourceVersion of our last write
    counted: bool = True  # takes its node's resources
    released: bool = False  # the final delete was sent

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def is_over(container: Container) -> bool:
    """Nothing of it runs."""
    return container.stage in (Stage.WAITING, Stage.EXITED)
