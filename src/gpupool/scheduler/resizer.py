"""Resizer: gives running pods another share of their cards, as they wish.

Annotations go through the pod's status, which schedulers may write: so the right to change what
pods run is not needed for it.
"""

import logging
from collections.abc import Callable
from functools import partial

from gpupool.core.gpu import Allocation
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.report import Reports
from gpupool.scheduler.resize_step import Resizable, Step, most, next_step
from gpupool.scheduler.resizing import Entry
from gpupool.scheduler.writes import Write
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.resources import PODS

log = logging.getLogger(__name__)


class Resizer:
    def __init__(
        self,
        kube: Kube,
        state: ClusterState,
        reports: Reports,
        clock: Callable[[], float],
        may_act: Callable[[], bool],
    ) -> None:
        self._kube = kube
        self._state = state
        self._reports = reports
        self._clock = clock
        self._may_act = may_act

    def begin(self) -> None:
        """When everything has been read, before the first decision: whoever worked before us may
        have granted any wish that still stands, and the write may be on its way."""
        for entry in self._state.resizing.entries():
            self._hold(entry, most(self._state.cluster, entry.pod))

    def due_writes(self, now_s: float) -> list[Write]:
        entries = self._state.resizing.take_due(now_s)
        made = (self._decided(entry) for entry in entries)
        return [write for write in made if write is not None]

    def _decided(self, entry: Entry) -> Write | None:
        resizing = self._state.resizing
        try:
            report, quotas = resizing.report(entry.pod), self._state.quotas.values()
            step = next_step(self._state.cluster, entry.pod, report, quotas)
        except (AssertionError, LookupError, TypeError, ValueError):
            log.exception("wish could not be judged", extra={"pod": entry.pod.name})
            resizing.again(entry, self._clock())
            return None
        if step is None:
            return None
        self._hold(entry, step.holds)
        return partial(self._write, entry, entry.pod, step)

    def _hold(self, entry: Entry, allocation: Allocation) -> None:
        self._state.hold(entry.pod.uid, self._state.resizing.hold(entry, allocation))

    async def _write(self, entry: Entry, pod: Resizable, step: Step) -> None:
        if not self._may_act():  # another decides now
            return
        metadata = {
            "uid": pod.uid,
            "resourceVersion": pod.version,
            "annotations": step.changes,
        }
        try:
            path = PODS.path(pod.namespace, pod.name, "status")
            await self._kube.patch(path, {"metadata": metadata})
        except NotFound:
            return
        except KubeError as error:
            log.info("share not changed", extra={"pod": pod.name, "error": str(error)})
            self._state.resizing.again(entry, self._clock())
            return
        if step.refusal:
            self._reports.warn(pod.as_object, "ResizeRefused", f"Share not changed: {step.refusal}")
        elif step.grant:
            self._reports.note(pod.as_object, "Resized", step.grant)
