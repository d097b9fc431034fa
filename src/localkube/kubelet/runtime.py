"""Runtime: what runs containers, and the simpler of the two runtimes, `TimerRuntime`. The other one
is runtime_process.py.

No method waits. `start` and `stop` begin something; its result is reported later, by a change of
the container (lifecycle.py) and a request for another look at the pod."""

from collections.abc import Callable
from typing import Protocol

from kubeclient.objects import Obj
from localkube.kubelet.lifecycle import mark_exited, mark_running
from localkube.kubelet.notices import Notices
from localkube.kubelet.state import Container, Pod, Role, Stage
from localkube.names import Names


class Runtime(Protocol):
    def adopt(self, pod: Pod, obj: Obj, now: float) -> None:
        """Takes over a pod from before a restart, whose record was restored from its status."""

    def seen(self, pod: Pod, obj: Obj) -> None:
        """The object has changed, perhaps only its labels or annotations, which volumes may
        show."""

    def look(self, pod: Pod, obj: Obj, now: float) -> float | None:
        """Updates the stages of the containers; returns the time of the next look, if one is
        needed."""

    def start(self, pod: Pod, index: int, obj: Obj, now: float) -> None:
        """Begins a run of the container, whose stage is STARTING."""

    def stop(self, pod: Pod, index: int, obj: Obj, grace_s: float, now: float) -> None:
        """Begins to stop the run, whose stage is STARTING or RUNNING."""

    def remove(self, pod: Pod) -> None:
        """The pod or its node is gone: stops everything, and deletes the files."""


_TERMINATED = 143  # by SIGTERM


class TimerRuntime:
    """Containers that are timers: they run at once, for ever or for as long as an annotation says.

    No process is started, and nothing is stored besides the pod's record. A restart of the server
    does not end them, because their start time is in the status."""

    def __init__(
        self, notices: Notices, remove_traces: Callable[[Pod], None], names: Names
    ) -> None:
        self._notices = notices
        self._remove_traces = remove_traces
        self._names = names

    def adopt(self, pod: Pod, obj: Obj, now: float) -> None:
        pod.prepared = True

    def seen(self, pod: Pod, obj: Obj) -> None:
        pass  # there are no volumes to update

    def look(self, pod: Pod, obj: Obj, now: float) -> float | None:
        annotations = obj["metadata"].get("annotations") or {}
        seconds = _number(annotations.get(self._names.run_seconds_annotation))
        next_end: float | None = None
        for container in pod.containers:
            if container.stage is not Stage.RUNNING:
                continue
            lasts_s = _lasts_s(container, seconds)
            if lasts_s is None:
                continue
            end = container.started_at + lasts_s
            if end > now:
                next_end = end if next_end is None else min(next_end, end)
                continue
            code = 0
            if container.role is Role.MAIN:
                code = int(_number(annotations.get(self._names.exit_code_annotation)) or 0)
            mark_exited(container, code, end)
        return next_end

    def start(self, pod: Pod, index: int, obj: Obj, now: float) -> None:
        if not pod.prepared:
            pod.prepared = True
            self._complain(pod, obj)
        mark_running(pod.containers[index], now)

    def stop(self, pod: Pod, index: int, obj: Obj, grace_s: float, now: float) -> None:
        mark_exited(pod.containers[index], _TERMINATED, now)

    def remove(self, pod: Pod) -> None:
        self._remove_traces(pod)

    def _complain(self, pod: Pod, obj: Obj) -> None:
        annotations = obj["metadata"].get("annotations") or {}
        for name in (self._names.run_seconds_annotation, self._names.exit_code_annotation):
            if name in annotations and _number(annotations[name]) is None:
                text = (
                    f"Annotation {name} has no effect: wanted a number, found {annotations[name]!r}"
                )
                self._notices.warn(pod, obj, "BadAnnotation", text)


def is_settled(obj: Obj, names: Names) -> bool:
    """Whether a pod of timers from before a restart needs no work at all."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    return (
        status.get("phase") == "Running"
        and status.get("observedGeneration", 0) == metadata.get("generation", 0)
        and all("running" in entry["state"] for entry in status.get("containerStatuses") or ())
        and any(
            c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ()
        )
        and "deletionTimestamp" not in metadata
        and "activeDeadlineSeconds" not in obj["spec"]
        and names.run_seconds_annotation not in (metadata.get("annotations") or {})
    )


def _lasts_s(container: Container, seconds: float | None) -> float | None:
    match container.role:
        case Role.INIT:
            return 0.0
        case Role.MAIN:
            return seconds
        case _:
            return None


def _number(text: str | None) -> float | None:
    """None if the annotation is no number in the allowed range."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
