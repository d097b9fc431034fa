"""Binder: writes decisions to the API.

A Binding carries the allocation, the pod's uid and its version, so node and cards come to the pod
in one step or not at all, and to no other pod. The version comes before the look at whether we
still lead: one who is frozen between the two sends nothing, one who is frozen after them sends what
a successor has made void (`takeover.py`). A "no" gives the place back. Without an answer the place
is kept, and kept the same, until the pod is seen there, is gone, or has been looked at so late that
no request can still be on its way.
"""

import logging
import time
from collections.abc import Callable

from gpupool.contract.allocation import allocation_annotations
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.ledger import Assignment, Knowledge
from gpupool.scheduler.metrics import Metrics, Result
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.report import SCHEDULER_ERROR, Reports
from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound, NotSent, Refused, is_certain
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

# An API server gives up on a request after a minute.
_LATEST_S = 90.0


# The pod is gone or bound already, or the server is busy: nothing that the user could change.
_NOT_FOR_THE_USER = (404, 409, 429)


class Binder:
    def __init__(
        self,
        kube: Kube,
        state: ClusterState,
        reports: Reports,
        metrics: Metrics,
        clock: Callable[[], float],
        may_act: Callable[[], bool],
    ) -> None:
        self._kube = kube
        self._state = state
        self._reports = reports
        self._metrics = metrics
        self._clock = clock
        self._may_act = may_act

    async def bind(self, pod: Pending, assignment: Assignment, began_s: float) -> None:
        latest = self._state.pending.get(pod.uid, pod)
        try:
            await self._ask(pod, assignment, latest.as_object)
        except Conflict:  # somebody wrote to the pod, perhaps we ourselves, why it waited
            await self.look(pod, assignment, began_s)
        except KubeError as error:
            self._not_bound(pod, assignment, began_s, error)
        else:
            self._bound(pod, assignment, began_s)

    async def _ask(self, pod: Pending, assignment: Assignment, seen: Obj) -> None:
        """For the pod as it was seen. Raises KubeError."""
        if not self._may_act():
            raise NotSent("another scheduler may have taken over")
        annotations = allocation_annotations(assignment.allocation, now_ns=time.time_ns())
        self._state.ledger.asked(pod.uid, self._clock())
        await self._kube.bind(seen, assignment.node, annotations)

    def _bound(self, pod: Pending, assignment: Assignment, began_s: float) -> None:
        self._state.ledger.answered(pod.uid)
        self._state.queue.forget(pod.uid)
        now_s = self._clock()
        self._metrics.tried(Result.SCHEDULED, now_s - began_s)
        self._metrics.pod_seconds.observe(now_s - pod.seen_s)
        self._reports.bound(pod, assignment.node)

    def _not_bound(
        self, pod: Pending, assignment: Assignment, began_s: float, error: KubeError
    ) -> None:
        if not is_certain(error):
            self._state.ledger.asked(pod.uid, self._clock())
        elif assignment.knowledge is Knowledge.ASSUMED:  # nothing from before is on its way either
            self._state.refused(pod.uid)
        if isinstance(error, Refused) and error.code not in _NOT_FOR_THE_USER:
            words = f"binding rejected: {error}"
            self._reports.waits(pod, lambda: words, SCHEDULER_ERROR)
        log.warning("not bound", extra={"pod": pod.shown, "error": str(error)})
        self._again(pod, began_s)

    def _again(self, pod: Pending, began_s: float) -> None:
        self._metrics.tried(Result.ERROR, self._clock() - began_s)
        self._state.queue.back_off(pod.uid, self._clock())
        self._state.wake()

    async def look(self, pod: Pending, assignment: Assignment, began_s: float) -> None:
        """Nobody knows what became of a Binding: see, and ask again for the same."""
        try:
            found = await self._kube.get(PODS, pod.request.name, pod.request.namespace)
            if found["metadata"]["uid"] != pod.uid or found["spec"].get("nodeName"):
                # The watch will say the same; what it says first counts.
                self._state.queue.back_off(pod.uid, self._clock())
                return
            if assignment.asked_s and self._clock() - assignment.asked_s > _LATEST_S:
                self._state.refused(pod.uid)
                self._state.queue.back_off(pod.uid, self._clock())
                return
            await self._ask(pod, assignment, found)
        except NotFound:
            self._state.refused(pod.uid)
        except KubeError as error:
            self._not_bound(pod, assignment, began_s, error)
        else:
            self._bound(pod, assignment, began_s)
