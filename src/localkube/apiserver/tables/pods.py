"""Rows of pods: the summary that kubectl shows of conditions and container states.

Lists of pods are long, so only the fields that a row needs are decoded.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from kubeclient.objects import Obj
from kubeclient.times import seconds_of
from localkube.apiserver.tables.durations import since
from localkube.apiserver.tables.texts import NONE


class _Terminated(msgspec.Struct, rename="camel", frozen=True, gc=False):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    finished_at: str | None = None

    @property
    def shown(self) -> str:
        if self.reason:
            return self.reason
        return f"Signal:{self.signal}" if self.signal else f"ExitCode:{self.exit_code}"


class _Waiting(msgspec.Struct, rename="camel", frozen=True, gc=False):
    reason: str = ""


class _Running(msgspec.Struct, rename="camel", frozen=True, gc=False):
    pass


class _State(msgspec.Struct, rename="camel", frozen=True, gc=False):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()


class _Condition(msgspec.Struct, rename="camel", frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Container(msgspec.Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    restart_policy: str = ""


class _Gate(msgspec.Struct, rename="camel", frozen=True, gc=False):
    condition_type: str = ""


class _Address(msgspec.Struct, rename="camel", frozen=True, gc=False):
    ip: str = ""


class Meta(msgspec.Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class Spec(msgspec.Struct, rename="camel", frozen=True, gc=False):
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    readiness_gates: list[_Gate] = []
    node_name: str = ""


class Status(msgspec.Struct, rename="camel", frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    conditions: list[_Condition] = []
    init_container_statuses: list[_ContainerStatus] = []
    container_statuses: list[_ContainerStatus] = []
    pod_i_ps: list[_Address] = msgspec.field(default_factory=list, name="podIPs")


class _Pod(msgspec.Struct, rename="camel", frozen=True, gc=False):
    metadata: Meta
    spec: Spec = Spec()
    status: Status = Status()


class StoredPod(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """A pod whose metadata is passed on as it is stored."""

    metadata: msgspec.Raw
    spec: Spec = Spec()
    status: Status = Status()


DECODE = msgspec.json.Decoder(StoredPod).decode
_DECODE_META = msgspec.json.Decoder(Meta).decode

_COMPLETED: dict[str, list[Obj]] = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}


class _Tally:
    """What a walk over container states adds up."""

    __slots__ = ("last_restart", "ready", "restarts", "shown")

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.ready = 0
        self.restarts = 0
        self.last_restart: str | None = None

    def add_restarts(self, container: _ContainerStatus) -> None:
        self.restarts += container.restart_count
        ended = container.last_state.terminated
        if ended is not None and ended.finished_at and _later(ended.finished_at, self.last_restart):
            self.last_restart = ended.finished_at

    def take_restarts(self, other: "_Tally") -> None:
        self.restarts = other.restarts
        self.last_restart = other.last_restart


def pod_cells(pod: Obj, now_s: float) -> list[Any]:
    view = msgspec.convert(pod, _Pod, strict=False)
    return _cells(view.metadata, view.spec, view.status, now_s)


def stored_pod_cells(pod: StoredPod, now_s: float) -> list[Any]:
    return _cells(_DECODE_META(pod.metadata), pod.spec, pod.status, now_s)


def row_conditions(phase: str) -> list[Obj] | None:
    """Marks finished pods, so that clients can tell their rows apart."""
    return _COMPLETED.get(phase)


def _cells(meta: Meta, spec: Spec, status: Status, now_s: float) -> list[Any]:
    sidecars = {c.name for c in spec.init_containers if c.restart_policy == "Always"}
    tally = _Tally(_reason(status))
    if status.init_container_statuses:
        of_sidecars = _Tally("")
        held_up = _walk_init(spec, status, (sidecars, of_sidecars), tally)
        if not held_up or _condition(status.conditions, "Initialized"):
            # Once a pod is initialized, only its sidecars' restarts still count.
            tally.take_restarts(of_sidecars)
            _walk_containers(status, tally)
    else:
        _walk_containers(status, tally)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts = f"{tally.restarts} ({since(tally.last_restart, now_s)} ago)"
    return [
        meta.name,
        f"{tally.ready}/{len(spec.containers) + len(sidecars)}",
        _deleted_reason(meta, status) or tally.shown,
        restarts,
        since(meta.creation_timestamp, now_s),
        (status.pod_i_ps[0].ip if status.pod_i_ps else "") or NONE,
        spec.node_name or NONE,
        status.nominated_node_name or NONE,
        _gates(spec, status) if spec.readiness_gates else NONE,
    ]


def _reason(status: Status) -> str:
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "SchedulingGated":
            return condition.reason
    return status.reason or status.phase


def _deleted_reason(meta: Meta, status: Status) -> str:
    if meta.deletion_timestamp is None:
        return ""
    if status.reason == "NodeLost":
        return "Unknown"
    return "" if status.phase in ("Succeeded", "Failed") else "Terminating"


def _walk_init(spec: Spec, status: Status, side: tuple[set[str], _Tally], tally: _Tally) -> bool:
    """Up to the first init container that still holds the pod up; whether there is one."""
    sidecars, of_sidecars = side
    for i, container in enumerate(status.init_container_statuses):
        tally.add_restarts(container)
        if container.name in sidecars:
            of_sidecars.add_restarts(container)
        ended = container.state.terminated
        if ended is not None and ended.exit_code == 0:
            continue
        if container.name in sidecars and container.started:
            tally.ready += container.ready
            continue
        waiting = container.state.waiting
        if ended is not None:
            tally.shown = f"Init:{ended.shown}"
        elif waiting is not None and waiting.reason not in ("", "PodInitializing"):
            tally.shown = f"Init:{waiting.reason}"
        else:
            tally.shown = f"Init:{i}/{len(spec.init_containers)}"
        return True
    return False


def _walk_containers(status: Status, tally: _Tally) -> None:
    running, failed = False, ""
    for container in reversed(status.container_statuses):
        tally.add_restarts(container)
        state = container.state
        if state.waiting is not None and state.waiting.reason:
            tally.shown = state.waiting.reason
        elif state.terminated is not None:
            tally.shown = state.terminated.shown
            if state.terminated.exit_code:
                failed = tally.shown
        elif container.ready and state.running is not None:
            running = True
            tally.ready += 1
    if tally.shown == "Completed":
        if running and _condition(status.conditions, "Ready"):
            tally.shown = "Running"
        else:
            tally.shown = failed or ("NotReady" if running else tally.shown)


def _condition(conditions: Sequence[_Condition], kind: str) -> bool:
    return any(c.type == kind and c.status == "True" for c in conditions)


def _gates(spec: Spec, status: Status) -> str:
    true = sum(_condition(status.conditions, g.condition_type) for g in spec.readiness_gates)
    return f"{true}/{len(spec.readiness_gates)}"


def _later(timestamp: str, other: str | None) -> bool:
    return other is None or (seconds_of(timestamp) or 0) > (seconds_of(other) or 0)
