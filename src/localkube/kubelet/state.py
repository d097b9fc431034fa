"""The kubelet's records of its pods: small structs, no parsed objects.

There may be tens of thousands of them, so they are structs that Python's garbage collector does not
track. The stages of a container:

    WAITING -> STARTING -> RUNNING -> EXITED -> STARTING ...
                  |                     ^
                  +-- could not start --+-- or back to WAITING, with a `problem`

lifecycle.py decides what happens next; a runtime does it, and reports the new stage.
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
    """Why a container waits or a pod fails: reason and message for the status."""

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
    grace_s: float | None = None  # that probe's own grace period
    backoff_s: float = 0.0
    backoff_at: float = 0.0


class Stop(msgspec.Struct, frozen=True, gc=False):
    """The whole pod has to stop."""

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
    initialized: bool = False  # the init containers are done for good
    prepared: bool = False  # network and volumes are ready
    stop: Stop | None = None
    admitted: bool = True  # False: waits for its devices
    rejected: Problem | None = None  # not admitted, and never will be
    version: int = 0  # resourceVersion of our last write
    counted: bool = True  # its requests are taken from its node
    released: bool = False  # the final delete was sent

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def is_over(container: Container) -> bool:
    """Whether no process of the container runs."""
    return container.stage in (Stage.WAITING, Stage.EXITED)
