"""Shares that shrink: waits until a lowered limit is in force, then reads what is in use.

Before an allocation, the limiter reads its limit file again if it last did so more than a tenth
of a second ago. Once the file has shown the new limit for IN_FORCE_S, no process of the container
can allocate beyond it any more. Only then is the memory count read: read earlier, it could miss an
allocation under the old limit, and the scheduler would give away memory that is in use.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gpupool.agent.pod_files import (
    ContainerFiles,
    NoFiles,
    VolumePath,
    container_files,
    limits_in_force,
    used_mib,
)
from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import ANNOTATION_SHRINKING, GROUP_LIMITS
from gpupool.contract.resize import ShrinkReport
from gpupool.core.gpu import Isolation
from kubeclient.objects import Obj

# Ten times the interval at which the limiter reads its limit file again.
IN_FORCE_S = 1.0


@dataclass(slots=True)
class _Shrink:
    token: str
    since_s: float | None = None  # since when the files show the new limits
    report: ShrinkReport | None = None


class WallState(Protocol):
    """What is known of the driver's own limits."""

    def agrees(self, pod: Obj) -> bool:
        """Whether the driver holds the pod to its present limits, or does not hold it at all."""

    def used_mib(self, pod: Obj, container: str) -> Mapping[str, int]:
        """What the driver counts for a container that it holds, by card."""


class Shrinks:
    """Reports once for each lowered limit, as soon as it is in force."""

    def __init__(self, volume_path: VolumePath, walls: WallState | None = None) -> None:
        self._volume_path = volume_path
        self._walls = walls
        self._shrinks: dict[str, _Shrink] = {}  # by uid

    @property
    def is_waiting(self) -> bool:
        return any(shrink.report is None for shrink in self._shrinks.values())

    def reports(self, pods: Iterable[Obj], now_s: float) -> dict[str, ShrinkReport]:
        """Reports that are ready, by the pod's uid. Pods that no longer shrink are forgotten."""
        kept: dict[str, _Shrink] = {}
        for pod in pods:
            metadata = pod["metadata"]
            token = (metadata.get("annotations") or {}).get(ANNOTATION_SHRINKING)
            if token:
                known = self._shrinks.get(metadata["uid"])
                # Another token means another lowering, and the wait starts again
                # (docs/decisions/0015-resize.md).
                is_same = known is not None and known.token == token
                shrink = known if known is not None and is_same else _Shrink(token)
                if shrink.report is None:
                    self._look(shrink, pod, now_s)
                kept[metadata["uid"]] = shrink
        self._shrinks = kept
        return {uid: each.report for uid, each in kept.items() if each.report is not None}

    def _look(self, shrink: _Shrink, pod: Obj, now_s: float) -> None:
        annotations = pod["metadata"]["annotations"]
        try:
            files = {
                gpus.container: container_files(pod, gpus.container, self._volume_path)
                for gpus in pod_allocation(pod).containers
                if gpus.isolation is Isolation.LIMIT
            }
            # Limit and token were written at once, so the annotation in this object is the limit
            # that the token stands for.
            is_shown = all(
                limits_in_force(each) == annotations.get(f"{GROUP_LIMITS}/{name}")
                for name, each in files.items()
            )
            if not is_shown or not (self._walls is None or self._walls.agrees(pod)):
                # The time counts only while all containers show their new limits.
                shrink.since_s = None
            elif shrink.since_s is None:
                shrink.since_s = now_s
            elif now_s - shrink.since_s > IN_FORCE_S:
                used = {name: self._used(pod, name, each) for name, each in files.items()}
                shrink.report = ShrinkReport(shrink.token, used)
        except NoFiles as error:
            # A failure is reported, too: without any report the scheduler would wait forever.
            shrink.report = ShrinkReport(shrink.token, problem=str(error))

    def _used(self, pod: Obj, container: str, files: ContainerFiles) -> dict[str, int]:
        """The larger of what the limiter and the driver count: each knows memory that the other
        does not (managed memory; code and stacks). Raises NoFiles."""
        used = used_mib(container, files)
        by_driver = self._walls.used_mib(pod, container) if self._walls is not None else {}
        for uuid, mib in by_driver.items():
            used[uuid] = max(used.get(uuid, 0), mib)
        return used
