"""PodStatus, as a kubelet writes it. Pure.

What others wrote there (PodScheduled, readiness gates, the quality-of-service class) is kept.
"""

import datetime
from collections.abc import Sequence
from functools import lru_cache

from kubeclient.objects import Obj
from localkube.kubelet.conditions import conditions
from localkube.kubelet.lifecycle import restarts
from localkube.kubelet.pod_phase import phase
from localkube.kubelet.state import ID_SCHEME, Container, Exit, Pod, Role, Stage

_LISTS = (
    ("initContainerStatuses", "initContainers", (Role.INIT, Role.SIDECAR)),
    ("containerStatuses", "containers", (Role.MAIN,)),
    ("ephemeralContainerStatuses", "ephemeralContainers", (Role.EPHEMERAL,)),
)
_KEPT = ("qosClass", "nominatedNodeName", "resize", "resourceClaimStatuses")


def stamp(when: float) -> str:
    return _stamp(int(when))


@lru_cache(maxsize=1024)
def _stamp(when_s: int) -> str:
    at = datetime.datetime.fromtimestamp(when_s, datetime.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_status(pod: Pod, obj: Obj, host_ip: str, now: float) -> Obj:
    """The status of `pod`, whose object is `obj`."""
    before: Obj = obj.get("status") or {}
    status: Obj = {key: before[key] for key in _KEPT if key in before}
    word = phase(pod)
    status["phase"] = word
    if pod.generation:
        status["observedGeneration"] = pod.generation
    verdict = pod.rejected or (pod.stop.verdict if pod.stop is not None else None)
    if verdict is not None:
        status["reason"], status["message"] = verdict.reason, verdict.message
    status["startTime"] = stamp(pod.start_time)
    if pod.rejected is not None:
        status["conditions"] = before.get("conditions") or []
        return status
    status["conditions"] = conditions(pod, obj, word, stamp(now))
    status["hostIP"], status["hostIPs"] = host_ip, [{"ip": host_ip}]
    if pod.ip and pod.prepared:
        status["podIP"], status["podIPs"] = pod.ip, [{"ip": pod.ip}]
    _add_containers(status, pod, obj["spec"])
    return status


def _add_containers(status: Obj, pod: Pod, spec: Obj) -> None:
    waiting = "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
    for field, listed, roles in _LISTS:
        specs: Sequence[Obj] = spec.get(listed) or ()
        mine = [c for c in pod.containers if c.role in roles]
        if mine:
            status[field] = [
                _container_status(pod, container, given, waiting)
                for container, given in zip(mine, specs, strict=False)
            ]


def _container_status(pod: Pod, container: Container, spec: Obj, waiting: str) -> Obj:
    state, last = _states(pod, container, waiting)
    running = container.stage is Stage.RUNNING
    image = spec.get("image", "")
    status: Obj = {
        "name": container.name,
        "state": state,
        "lastState": {} if last is None else {"terminated": _terminated(last)},
        "ready": _is_ready(container),
        "restartCount": container.restart_count,
        "image": image,
        "imageID": f"{ID_SCHEME}{image}" if container.container_id else "",
        "started": running and container.started,
    }
    if container.container_id and (container.stage is not Stage.STARTING):
        status["containerID"] = f"{ID_SCHEME}{container.container_id}"
    if running:
        _add_resources(status, spec)
    mounts = spec.get("volumeMounts")
    if mounts:
        status["volumeMounts"] = [_mount(mount) for mount in mounts]
    return status


def _is_ready(container: Container) -> bool:
    if container.role is Role.INIT:
        ended = container.exit
        return ended is not None and ended.code == 0
    return container.stage is Stage.RUNNING and container.ready


def _states(pod: Pod, container: Container, waiting: str) -> tuple[Obj, Exit | None]:
    """`state` and what `lastState` tells of."""
    match container.stage:
        case Stage.RUNNING:
            return {"running": {"startedAt": stamp(container.started_at)}}, container.before
        case Stage.EXITED:
            assert container.exit is not None
            if pod.stop is None and _comes_back(pod, container) and container.problem is not None:
                return {"waiting": _waiting(container, waiting)}, container.exit
            return {"terminated": _terminated(container.exit)}, container.before
        case _:
            return {"waiting": _waiting(container, waiting)}, container.before


def _comes_back(pod: Pod, container: Container) -> bool:
    if container.role is Role.EPHEMERAL or (container.role is Role.INIT and pod.initialized):
        return False
    return restarts(container)


def _waiting(container: Container, reason: str) -> Obj:
    if container.problem is None:
        return {"reason": reason}
    return {"reason": container.problem.reason, "message": container.problem.message}


def _terminated(ended: Exit) -> Obj:
    state: Obj = {
        "exitCode": ended.code,
        "reason": ended.reason,
        "startedAt": stamp(ended.started_at),
        "finishedAt": stamp(ended.finished_at),
        "containerID": f"{ID_SCHEME}{ended.container_id}",
    }
    if ended.message:
        state["message"] = ended.message
    return state


def _add_resources(status: Obj, spec: Obj) -> None:
    resources = spec.get("resources") or {}
    status["resources"] = resources
    if resources.get("requests"):
        status["allocatedResources"] = resources["requests"]


def _mount(mount: Obj) -> Obj:
    shown: Obj = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        shown |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return shown
