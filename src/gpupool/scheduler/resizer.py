"""Resizer: changes the share of running pods, as their resize annotation asks.

The annotations are written through the status subresource of the pod. So the scheduler needs only
the right to patch pods/status, not the right to change the spec of any pod.
"""

import logging
from functools import partial

from gpupool.core.gpu import Allocation
from gpupool.scheduler.resize_step import Resizable, Step, most, next_step
from gpupool.scheduler.resizing import Entry
from gpupool.scheduler.writes import Write, WriteContext
from kubeclient.errors import KubeError, NotFound
from kubeclient.resources import PODS

log = logging.getLogger(__name__)


class Resizer:
    def __init__(self, context: WriteContext) -> None:
        self._kube = context.kube
        self._state = context.state
        self._reports = context.reports
        self._clock = context.clock
        self._may_act = context.may_act

    def begin(self) -> None:
        """Call when everything has been read, before the first decision.

        An earlier leader may have granted any request that is still pending, and its write may
        still arrive. So each such pod holds the larger share from the start.
        """
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
        # The request is text that a user wrote. It is evaluated inside the scheduling loop, and an
        # error with one pod must not end that loop.
        except Exception:
            log.exception("resize request could not be evaluated", extra={"pod": entry.pod.name})
            resizing.again(entry, self._clock())
            return None
        if step is None:
            return None
        # Before the write: as soon as that is sent, the larger share may be real.
        self._hold(entry, step.holds)
        return partial(self._write, entry, entry.pod, step)

    def _hold(self, entry: Entry, allocation: Allocation) -> None:
        self._state.hold(entry.pod.uid, self._state.resizing.hold(entry, allocation))

    async def _write(self, entry: Entry, pod: Resizable, step: Step) -> None:
        # Without a retry: the next leader continues from the annotations (`begin`).
        if not self._may_act():  # another may be the leader
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
