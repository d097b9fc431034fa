"""Events about pods, with the texts of the kubelet."""

from collections.abc import Mapping

from kubeclient.events import NORMAL, WARNING, Recorder
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from localkube.kubelet.state import SPEC_LISTS, Container, Pod, Problem


class Notices:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def note(
        self, pod: Pod, obj: Obj, reason: str, message: str, about: Container | None = None
    ) -> None:
        self._say(pod, obj, NORMAL, reason, message, about)

    def warn(
        self, pod: Pod, obj: Obj, reason: str, message: str, about: Container | None = None
    ) -> None:
        self._say(pod, obj, WARNING, reason, message, about)

    def back_off(self, pod: Pod, obj: Obj, container: Container) -> None:
        text = f"Back-off restarting failed container {container.name} in pod {_full(pod)}"
        self.warn(pod, obj, "BackOff", text, container)

    def _say(
        self, pod: Pod, obj: Obj, kind: str, reason: str, message: str, about: Container | None
    ) -> None:
        path = "" if about is None else f"spec.{SPEC_LISTS[about.role]}{{{about.name}}}"
        self._recorder.event(obj, kind, reason, message, host=pod.node, path=path)


def named(uid: str, pods: Mapping[str, Pod]) -> tuple[Key, Obj]:
    """The key of a pod, and an object that stands for it in an event."""
    pod = pods.get(uid)
    namespace, name = ("", uid) if pod is None else pod.key
    metadata = {"name": name, "namespace": namespace, "uid": uid}
    return (namespace, name), {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def crash_loop(pod: Pod, container: Container) -> Problem:
    text = f"back-off {_duration(container.backoff_s)} restarting failed"
    return Problem("CrashLoopBackOff", f"{text} container={container.name} pod={_full(pod)}")


def _full(pod: Pod) -> str:
    return f"{pod.name}_{pod.namespace}({pod.uid})"


def _duration(seconds: float) -> str:
    """In the format of Go: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"
