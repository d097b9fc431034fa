"""What happens next to a pod's containers. Pure: no clock, no I/O.

`plan` reads the stages of the containers, and says which to start, which to stop, and when to look
again. `begin`, `mark_running`, `mark_exited` and `mark_failed` change the stage of a container. The
order is that of Kubernetes: init containers one after the other (the next one waits until a sidecar
has started), then all main containers at once. Sidecars stop last, in reverse order.
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

_SHORTEST_END_S = 0.2


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """How long a container that keeps ending waits before its next start."""

    first_s: float = 10.0
    longest_s: float = 300.0
    forgotten_s: float = 600.0  # this long after the last start, the wait is `first_s` again


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
    """Whether the container, which has exited, is started again."""
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
    # Includes containers that are just starting: their runtime cancels the start.
    todo.stop += [i for i in (first or live[-1:]) if not pod.containers[i].stopping]
    todo.over = not live


def _initialize(pod: Pod, todo: Plan, now: float, backoff: RestartBackoff) -> bool:
    """True: all init containers are done, and all sidecars have started."""
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
        # The last attempt to start it failed.
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
    """A run begins. The exit of the last run is kept for `lastState`, and lengthens the
    back-off."""
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
    container.grace_s = None


def mark_running(container: Container, now: float, *, probed: bool = False) -> None:
    """`probed`: the container has probes, which decide when it has started and is ready."""
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
    """The start failed. That is no restart: restart_count and backoff_s stay as they are."""
    container.stage = Stage.WAITING
    container.problem = problem
    container.backoff_at = retry_at


def goodbye_at(pod: Pod) -> float:
    """The earliest time for the final deletion of a pod. `kubectl delete` first deletes and then
    watches; if a pod of the same name is created before the watch begins, it waits for ever. No
    container of a real node ends so fast."""
    assert pod.stop is not None
    return pod.stop.began_at + (_SHORTEST_END_S if pod.stop.grace_s else 0.0)
