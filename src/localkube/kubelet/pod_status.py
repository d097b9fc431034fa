"""The status of a pod, as a kubelet writes it: phase, conditions and containers. Pure.

What others wrote into it (readiness gates, the quality-of-service class) is kept.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from kubeclient.objects import Obj
from kubeclient.times import stamp
from localkube.kubelet.lifecycle import NEVER, restarts
from localkube.kubelet.state import ID_SCHEME, Container, Exit, Pod, Role, Stage

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"


def phase(pod: Pod) -> str:
    if pod.rejected is not None:
        return FAILED
    over = all(c.stage in (Stage.WAITING, Stage.EXITED) for c in pod.containers)
    if pod.stop is not None and over and pod.stop.verdict is not None:
        return FAILED
    if not pod.initialized:
        failed = any(_failed_for_good(c) for c in pod.containers if c.role is Role.INIT)
        return FAILED if over and (failed or pod.stop is not None) else PENDING
    return _of_mains(pod, over)


def _failed_for_good(container: Container) -> bool:
    ended = container.exit
    return ended is not None and ended.code != 0 and container.restart == NEVER


def _of_mains(pod: Pod, over: bool) -> str:
    mains = [c for c in pod.containers if c.role is Role.MAIN]
    kinds = Counter(_kind(c) for c in mains)
    if kinds["running"]:
        return PENDING if kinds["waiting"] else RUNNING
    if kinds["waiting"]:
        return FAILED if pod.stop is not None and over else PENDING
    if pod.stop is None and any(restarts(c) for c in mains):
        return RUNNING  # between two runs
    if not over:
        return RUNNING  # its sidecars still run
    succeeded = all(c.exit is not None and c.exit.code == 0 for c in mains)
    return SUCCEEDED if succeeded else FAILED


def _kind(container: Container) -> str:
    match container.stage:
        case Stage.RUNNING:
            return "running"
        case Stage.EXITED:
            return "exited"
        case _ if container.before is not None:
            return "running"  # it ran before and is being restarted
        case _:
            return "waiting"


_OWN = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

EVICTED, _DISRUPTED = "Evicted", "DisruptionTarget"

# Status, reason, message.
_Verdict = tuple[str, str, str]
_TRUE: _Verdict = ("True", "", "")


def conditions(pod: Pod, obj: Obj, phase: str, now: str) -> list[Obj]:
    """The conditions of others first, then the kubelet's own."""
    known = {c["type"]: c for c in (obj.get("status") or {}).get("conditions") or ()}
    verdicts = _verdicts(pod, obj["spec"], phase, known)
    made = [c for kind, c in known.items() if kind not in _OWN]
    verdict = pod.stop.verdict if pod.stop is not None else None
    if verdict is not None and verdict.reason == EVICTED and _DISRUPTED not in known:
        why = ("True", "TerminationByKubelet", verdict.message)
        made.append(_condition(_DISRUPTED, why, None, pod.generation, now))
    for kind in _OWN:
        made.append(_condition(kind, verdicts[kind], known.get(kind), pod.generation, now))
    return made


def is_shown(pod: Pod, obj: Obj) -> bool:
    """Whether the object's conditions are as the kubelet sees its pod. Not so: the kubelet has not
    written them yet, somebody else has, or a readiness gate has changed."""
    known = {c["type"]: c for c in (obj.get("status") or {}).get("conditions") or ()}
    verdicts = _verdicts(pod, obj["spec"], phase(pod), known)
    return all((known.get(kind) or {}).get("status") == verdicts[kind][0] for kind in _OWN)


def _condition(kind: str, verdict: _Verdict, before: Obj | None, generation: int, now: str) -> Obj:
    status, reason, message = verdict
    since = now
    if before is not None and before["status"] == status:
        since = before.get("lastTransitionTime") or now
    condition: Obj = {
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
    }
    if generation:
        condition["observedGeneration"] = generation
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _verdicts(pod: Pod, spec: Obj, phase: str, known: dict[str, Obj]) -> dict[str, _Verdict]:
    ready_to_start = pod.prepared and phase not in (SUCCEEDED, FAILED)
    containers = _containers_ready(pod, phase)
    return {
        "PodReadyToStartContainers": _TRUE if ready_to_start else ("False", "", ""),
        "Initialized": _initialized(pod, phase),
        "Ready": _gated(spec, containers, known),
        "ContainersReady": containers,
        "PodScheduled": _TRUE,
    }


def _initialized(pod: Pod, phase: str) -> _Verdict:
    if pod.initialized:
        return ("True", "PodCompleted", "") if phase == SUCCEEDED else _TRUE
    waiting = [c.name for c in pod.containers if _holds_up(c)]
    if not waiting:
        return _TRUE
    return (
        "False",
        "ContainersNotInitialized",
        f"containers with incomplete status: {_list(waiting)}",
    )


def _holds_up(container: Container) -> bool:
    if container.role is Role.SIDECAR:
        return not container.started
    done = container.exit is not None and container.exit.code == 0
    return container.role is Role.INIT and not done


def _containers_ready(pod: Pod, phase: str) -> _Verdict:
    if phase == SUCCEEDED:
        return "False", "PodCompleted", ""
    if phase == FAILED:
        return "False", "PodFailed", ""
    unready = [c.name for c in pod.containers if _counts(c) and not _is_ready(c)]
    if not unready:
        return _TRUE
    return "False", "ContainersNotReady", f"containers with unready status: {_list(unready)}"


def _counts(container: Container) -> bool:
    return container.role in (Role.MAIN, Role.SIDECAR)


def _gated(spec: Obj, containers: _Verdict, known: dict[str, Obj]) -> _Verdict:
    gates = spec.get("readinessGates")
    if containers[0] != "True" or not gates:
        return containers
    missing = [
        _gate_problem(kind, known.get(kind))
        for gate in gates
        if (known.get(kind := gate["conditionType"]) or {}).get("status") != "True"
    ]
    if not missing:
        return _TRUE
    return "False", "ReadinessGatesNotReady", ", ".join(missing)


def _gate_problem(kind: str, found: Obj | None) -> str:
    gate = f'corresponding condition of pod readiness gate "{kind}"'
    if found is None:
        return f"{gate} does not exist."
    return f'the status of pod readiness gate "{kind}" is not "True", but {found["status"]}'


def _list(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"


_LISTS = (
    ("initContainerStatuses", "initContainers", (Role.INIT, Role.SIDECAR)),
    ("containerStatuses", "containers", (Role.MAIN,)),
    ("ephemeralContainerStatuses", "ephemeralContainers", (Role.EPHEMERAL,)),
)
_KEPT = ("qosClass", "nominatedNodeName", "resize", "resourceClaimStatuses")


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
    """`state`, and the exit that `lastState` shows."""
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
