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
        """A pod from before a restart: its containers are as its status says, or have died."""

    def seen(self, pod: Pod, obj: Obj) -> None:
        """The object has changed, perhaps only in what volumes show of it."""

    def look(self, pod: Pod, obj: Obj, now: float) -> float | None:
        """Brings the containers up to date; returns when to look again by itself."""

    def start(self, pod: Pod, index: int, obj: Obj, now: float) -> None:
        """Begins a run of the container, which is STARTING."""

    def stop(self, pod: Pod, index: int, obj: Obj, grace_s: float, now: float) -> None:
        """Begins to end the run, which is STARTING or RUNNING."""

    def remove(self, pod: Pod) -> None:
        """The pod is gone, or the node is: nothing of it may be left."""


_TERMINATED = 143  # by SIGTERM


class TimerRuntime:
    def __init__(
        self, notices: Notices, remove_traces: Callable[[Pod], None], names: Names
    ) -> None:
        self._notices = notices
        self._remove_traces = remove_traces
        self._names = names

    def adopt(self, pod: Pod, obj: Obj, now: float) -> None:
        pod.prepared = True

    def seen(self, pod: Pod, obj: Obj) -> None:
        pass  # it has no volumes

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
    """A pod of timers from before a restart that nothing is to be done about."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    return (
        status.get("phase") == "Running"
        and status.get("observedGeneration", 0) == metadata.get("generation", 0)
        and all("running" in entry["state"] for entry in status.get("containerStatuses") or ())
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
    """None for what is no number: an annotation holds anything."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
