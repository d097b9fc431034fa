"""Makes the kubelet's record of a pod (state.py) from the pod's object. Pure."""

from collections.abc import Iterator
from sys import intern

from kubeclient.objects import Obj
from kubeclient.placement import pod_resources
from kubeclient.times import seconds_of
from localkube.kubelet.lifecycle import ALWAYS, NEVER, ON_FAILURE
from localkube.kubelet.state import Container, Exit, Pod, Problem, Role, Stage

_REQUESTS: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
_REMEMBERED = 4096


def _seconds(text: str | None) -> float:
    """0 when there is none."""
    return (seconds_of(text) if text else None) or 0.0


def pod_record(obj: Obj, runtime: str, now: float) -> Pod:
    metadata, spec = obj["metadata"], obj["spec"]
    status = obj.get("status") or {}
    policy = spec.get("restartPolicy", ALWAYS)
    pod = Pod(
        uid=metadata["uid"],
        namespace=intern(metadata["namespace"]),
        name=metadata["name"],
        node=intern(spec["nodeName"]),
        runtime=runtime,
        containers=tuple(_containers(spec, policy)),
        start_time=_seconds(status.get("startTime")) or now,
        requests=_shared(pod_resources(obj)),
        ip=status.get("podIP", ""),
        generation=metadata.get("generation", 0),
    )
    add_ephemeral(pod, spec)
    if status.get("startTime"):
        _recall(pod, status)
    return pod


def add_ephemeral(pod: Pod, spec: Obj) -> None:
    """Adds the ephemeral containers that are new in the spec."""
    known = sum(container.role is Role.EPHEMERAL for container in pod.containers)
    more = (spec.get("ephemeralContainers") or ())[known:]
    pod.containers += tuple(Container(given["name"], Role.EPHEMERAL, NEVER) for given in more)


def _containers(spec: Obj, policy: str) -> Iterator[Container]:
    for given in spec.get("initContainers") or ():
        yield _init(given, policy)
    for given in spec["containers"]:
        restart = given.get("restartPolicy") or policy
        yield Container(intern(given["name"]), Role.MAIN, intern(restart))


def _init(given: Obj, policy: str) -> Container:
    if given.get("restartPolicy") == ALWAYS:
        return Container(intern(given["name"]), Role.SIDECAR, ALWAYS)
    restart = given.get("restartPolicy") or (NEVER if policy == NEVER else ON_FAILURE)
    return Container(intern(given["name"]), Role.INIT, intern(restart))


def _shared(requests: dict[str, int]) -> dict[str, int]:
    """Pods of one template have equal requests: they share one dict, to save memory."""
    if len(_REQUESTS) > _REMEMBERED:
        _REQUESTS.clear()
    return _REQUESTS.setdefault(tuple(sorted(requests.items())), requests)


def _recall(pod: Pod, status: Obj) -> None:
    """Restores the state of the containers from the status, after a restart of the kubelet."""
    known = {
        entry["name"]: entry
        for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for entry in status.get(field) or ()
    }
    for container in pod.containers:
        entry = known.get(container.name)
        if entry is not None:
            _recall_container(container, entry)
    mains = [c for c in pod.containers if c.role is Role.MAIN]
    pod.initialized = any(c.stage is not Stage.WAITING or c.before is not None for c in mains)


def _recall_container(container: Container, entry: Obj) -> None:
    state, last = entry.get("state") or {}, entry.get("lastState") or {}
    container.restart_count = entry.get("restartCount", 0)
    container.container_id = _id_of(entry)
    if last.get("terminated"):
        container.before = _exit(last["terminated"])
    if running := state.get("running"):
        container.stage = Stage.RUNNING
        container.started_at = _seconds(running.get("startedAt"))
        container.started = bool(entry.get("started"))
        container.ready = bool(entry.get("ready"))
    elif ended := state.get("terminated"):
        container.stage = Stage.EXITED
        container.exit = _exit(ended)
    elif container.before is not None:  # it was waiting for its next run
        container.stage = Stage.EXITED
        container.exit, container.before = container.before, None
        waiting = state.get("waiting") or {}
        container.problem = Problem(waiting.get("reason", ""), waiting.get("message", ""))


def _id_of(entry: Obj) -> str:
    """Whatever the scheme: a pod may have been run by an older version, with another one."""
    return str(entry.get("containerID") or "").rpartition("://")[2]


def _exit(ended: Obj) -> Exit:
    return Exit(
        ended.get("exitCode", 0),
        ended.get("reason", ""),
        ended.get("message", ""),
        _seconds(ended.get("startedAt")),
        _seconds(ended.get("finishedAt")),
        _id_of(ended),
    )
