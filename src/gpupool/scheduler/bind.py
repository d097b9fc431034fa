"""Binder: writes decisions to the API.

A Binding carries the allocation and the pod's uid, so node and cards come to the pod in one step
or not at all, and never to a namesake. A "no" gives the place back. Without an answer the place is
kept, and kept the same, until the pod is seen there, is gone, or has been looked at so late that
no request can still be on its way.
"""

import logging
import time
from collections.abc import Callable

from gpupool.contract.allocation import allocation_annotations
from gpupool.kube.client import Kube
from gpupool.kube.errors import KubeError, NoAnswer, NotFound, Refused
from gpupool.kube.resources import PODS
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.ledger import Knowledge, Place
from gpupool.scheduler.metrics import Metrics, Result
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.report import SCHEDULER_ERROR, Reports

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

    async def bind(self, pod: Pending, place: Place, began_s: float) -> None:
        if not self._may_act():  # nothing was sent, and another decides now
            return
        annotations = allocation_annotations(place.allocation, now_ns=time.time_ns())
        try:
            await self._kube.bind(pod.as_object, place.node, annotations)
        except NoAnswer as error:
            self._state.ledger.unanswered(pod.uid, self._clock())
            self._again(pod, began_s, error)
        except Refused as error:
            if place.knowledge is Knowledge.ASSUMED:
                self._state.refused(pod.uid)
            if error.code not in _NOT_FOR_THE_USER:
                words = f"binding rejected: {error}"
                self._reports.waits(pod, lambda: words, SCHEDULER_ERROR)
            self._again(pod, began_s, error)
        else:
            self._state.queue.forget(pod.uid)
            now_s = self._clock()
            self._metrics.tried(Result.SCHEDULED, now_s - began_s)
            self._metrics.pod_seconds.observe(now_s - pod.seen_s)
            self._reports.bound(pod, place.node)

    def _again(self, pod: Pending, began_s: float, error: KubeError) -> None:
        log.warning("not bound", extra={"pod": pod.shown, "error": str(error)})
        self._metrics.tried(Result.ERROR, self._clock() - began_s)
        self._state.queue.back_off(pod.uid, self._clock())
        self._state.wake()

    async def look(self, pod: Pending, place: Place, began_s: float) -> None:
        """An earlier Binding got no answer: see what became of it, and ask again for the same."""
        try:
            found = await self._kube.get(PODS, pod.request.name, pod.request.namespace)
        except NotFound:
            self._state.refused(pod.uid)
            return
        except KubeError as error:
            self._again(pod, began_s, error)
            return
        if found["metadata"]["uid"] != pod.uid or found["spec"].get("nodeName"):
            # The watch will say the same; what it says first counts.
            self._state.queue.back_off(pod.uid, self._clock())
        elif self._clock() - place.asked_s > _LATEST_S:
            self._state.refused(pod.uid)
            self._state.queue.back_off(pod.uid, self._clock())
        else:
            await self.bind(pod, place, began_s)
