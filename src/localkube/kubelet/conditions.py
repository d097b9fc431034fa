"""A pod's conditions: how far it has come, and what it is waiting for. Pure."""

from collections.abc import Iterable

from kubeclient.objects import Obj
from localkube.kubelet.pod_phase import FAILED, SUCCEEDED
from localkube.kubelet.state import Container, Pod, Role, Stage

_OWN = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

EVICTED, _DISRUPTED = "Evicted", "DisruptionTarget"

# Status, reason, message.
_Verdict = tuple[str, str, str]
_TRUE: _Verdict = ("True", "", "")


def conditions(pod: Pod, obj: Obj, phase: str, now: str) -> list[Obj]:
    """Others' conditions first, then the kubelet's own."""
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


def _is_ready(container: Container) -> bool:
    return container.stage is Stage.RUNNING and container.ready


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
