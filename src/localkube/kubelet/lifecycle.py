"""What should happen next to a pod's containers. Pure: no clock, no I/O.

`plan` looks at where the containers are and says which to start, which to stop and when to look
again; `begin`, `mark_running`, `mark_exited` and `mark_failed` move a container on. The order is
Kubernetes': init containers one after the other, a sidecar holds up the next until it has started;
then the others all at once; sidecars stop last, in reverse.
"""

from dataclasses import dataclass, field

from localkube.kubelet.state import (
    Container,
    Exit,
    Pod,
    Problem,
    Role,
    Stage,
    is_over,
)

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """How long a container that ends again and again has to wait."""

    first_s: float = 10.0
    longest_s: float = 300.0
    forgotten_s: float = 600.0  # after so long, it begins with `first_s` again


@dataclass(slots=True)
class Plan:
    start: list[int] = field(default_factory=list)
    stop: list[int] = field(default_factory=list)
    backing_off: list[int] = field(default_factory=list)
    look_at: float | None = None
    over: bool = False  # every container has ended for good

    def wait_until(self, when: float) -> None:
        if self.look_at is None or when < self.look_at:
            self.look_at = when


def restarts(container: Container) -> bool:
    """Whether it is to run again after the exit that it had."""
    assert container.exit is not None
    if container.restart == ALWAYS or container.unhealthy:
        return container.restart != NEVER
    return container.restart == ON_FAILURE and container.exit.code != 0


def plan(pod: Pod, now: float, backoff: RestartBackoff) -> Plan:
    todo = Plan()
    if pod.stop is not None or pod.rejected is not None:
        _stop_all(pod, todo)
        return todo
    for index, container in enumerate(pod.containers):
        if container.unhealthy and container.stage is Stage.RUNNING and not container.stopping:
            todo.stop.append(index)
    if not pod.initialized and not _initialize(pod, todo, now, backoff):
        return todo
    _run(pod, todo, now, backoff)
    return todo


def _stop_all(pod: Pod, todo: Plan) -> None:
    live = [i for i, c in enumerate(pod.containers) if not is_over(c)]
    first = [i for i in live if pod.containers[i].role is not Role.SIDECAR]
    # A container that is just starting is stopped once it runs.
    todo.stop += [i for i in (first or live[-1:]) if not pod.containers[i].stopping]
    todo.over = not live


def _initialize(pod: Pod, todo: Plan, now: float, backoff: RestartBackoff) -> bool:
    """True when the init containers are through."""
    for index, container in enumerate(pod.containers):
        match container.role:
            case Role.SIDECAR:
                _keep_running(index, container, todo, now, backoff)
                if not container.started:
                    return False
            case Role.INIT:
                ended = container.exit if container.stage is Stage.EXITED else None
                if ended is not None and ended.code == 0:
                    continue
                if ended is not None and container.restart == NEVER:
                    _stop_all(pod, todo)  # the pod has failed
                    return False
                _keep_running(index, container, todo, now, backoff)
                return False
            case _:
                break
    pod.initialized = True
    return True


def _run(pod: Pod, todo: Plan, now: float, backoff: RestartBackoff) -> None:
    ended = True
    for index, container in enumerate(pod.containers):
        match container.role:
            case Role.MAIN:
                if container.stage is Stage.EXITED and not restarts(container):
                    continue
                ended = False
                _keep_running(index, container, todo, now, backoff)
            case Role.EPHEMERAL:
                if container.stage is Stage.WAITING:
                    _keep_running(index, container, todo, now, backoff)
            case _:
                continue
    if ended:
        _stop_all(pod, todo)
        return
    for index, container in enumerate(pod.containers):
        if container.role is Role.SIDECAR:
            _keep_running(index, container, todo, now, backoff)


def _keep_running(
    index: int, container: Container, todo: Plan, now: float, backoff: RestartBackoff
) -> None:
    if container.stage is Stage.WAITING and container.problem is not None:
        # It could not be started: try again after a while.
        if now < container.backoff_at:
            todo.wait_until(container.backoff_at)
            return
        todo.start.append(index)
    elif container.stage is Stage.WAITING:
        todo.start.append(index)
    elif container.stage is Stage.EXITED:
        assert container.exit is not None
        until = container.exit.finished_at + container.backoff_s
        if container.backoff_s and now < until and not _forgotten(container, now, backoff):
            todo.backing_off.append(index)
            todo.wait_until(until)
        else:
            todo.start.append(index)


def _forgotten(container: Container, now: float, backoff: RestartBackoff) -> bool:
    return now - container.backoff_at > backoff.forgotten_s


def begin(container: Container, container_id: str, now: float, backoff: RestartBackoff) -> None:
    """A run begins; how the last one ended is kept, and counts towards the back-off."""
    if container.exit is not None:
        if not container.backoff_s or _forgotten(container, now, backoff):
            container.backoff_s = backoff.first_s
        else:
            container.backoff_s = min(2 * container.backoff_s, backoff.longest_s)
        container.backoff_at = now
        container.before, container.exit = container.exit, None
        container.restart_count += 1
    container.stage = Stage.STARTING
    container.container_id = container_id
    container.problem = None
    container.started = container.ready = False
    container.stopping = container.unhealthy = False


def mark_running(container: Container, now: float, *, probed: bool = False) -> None:
    """`probed`: its probes decide when it has started and is ready."""
    container.stage = Stage.RUNNING
    container.started_at = now
    if not probed:
        container.started = container.ready = True


def mark_exited(
    container: Container, code: int, now: float, message: str = "", reason: str = ""
) -> None:
    container.exit = Exit(
        code,
        reason or ("Completed" if code == 0 else "Error"),
        message,
        container.started_at or now,
        now,
        container.container_id,
    )
    container.stage = Stage.EXITED
    container.started = container.ready = container.stopping = False


def mark_failed(container: Container, problem: Problem, retry_at: float) -> None:
    """It could not be started; the next attempt is a first one still."""
    container.stage = Stage.WAITING
    container.problem = problem
    container.backoff_at = retry_at
