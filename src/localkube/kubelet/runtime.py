"""Runtime: what runs containers. One of timers, one of processes; pods.py knows no difference.

Nothing here waits: `start` and `stop` begin something, and what comes of it is reported later by
moving the container on (lifecycle.py) and asking for another look at the pod.
"""

from typing import Protocol

from kubeclient.objects import Obj
from localkube.kubelet.state import Pod


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
