"""Binder: writes decisions to the API server as Bindings.

A Binding carries the allocation, the pod's uid and its resourceVersion. The API server applies all
of it or nothing: the pod gets node and cards in one step, and no other pod can get them by mistake.

Fencing: a leader that was frozen (suspended, swapped out) may send a Binding long after another has
taken over. The order in `_ask` makes that harmless and must not be changed:

1. the resourceVersion of the pod is read;
2. `may_act` is asked: is the Lease still surely ours?
3. the Binding is sent with that resourceVersion.

A leader that freezes between 1 and 2 finds `may_act` false and sends nothing. A leader that
freezes after 2 sends a resourceVersion from before the failover. The new leader has written to
every pending pod before its first decision (`takeover.py`), so the API server answers 409.

What is held after the request: a certain refusal releases the assignment. Without an answer the
Binding may have happened, so the assignment is kept, with the same node and the same cards, until
the pod is seen bound, is gone, or was read without a node so late that no request can still arrive.
"""

import logging
import time

from gpupool.contract.allocation import allocation_annotations
from gpupool.scheduler.ledger import Assignment, Knowledge
from gpupool.scheduler.metrics import Result
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.report import SCHEDULER_ERROR
from gpupool.scheduler.writes import WriteContext
from kubeclient.errors import Conflict, KubeError, NotFound, NotSent, Refused, is_certain
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

# An API server gives up on a request after a minute: after this time it cannot happen any more.
LATEST_S = 90.0
# The pod is gone, bound already, or the server is busy. The user cannot change any of it, so these
# are not reported on the pod.
_NOT_FOR_THE_USER = (404, 409, 429)


class Binder:
    def __init__(self, context: WriteContext) -> None:
        self._kube = context.kube
        self._state = context.state
        self._reports = context.reports
        self._metrics = context.metrics
        self._clock = context.clock
        self._may_act = context.may_act

    async def bind(self, pod: Pending, assignment: Assignment, began_s: float) -> None:
        # The pod may have been written to since the decision, for example by our own report. Its
        # newest resourceVersion avoids a 409 and one more read.
        latest = self._state.pending.get(pod.uid, pod)
        try:
            await self._ask(pod, assignment, latest.as_object)
        except Conflict:
            # The pod was written to since: often by ourselves, to report why it is pending.
            await self.look(pod, assignment, began_s)
        except KubeError as error:
            self._not_bound(pod, assignment, began_s, error)
        else:
            self._bound(pod, assignment, began_s)

    async def _ask(self, pod: Pending, assignment: Assignment, seen: Obj) -> None:
        """Send the Binding for the pod as it was seen. The order of steps is fencing: see above.

        Raises KubeError.
        """
        if not self._may_act():
            raise NotSent("another scheduler may have taken over")
        annotations = allocation_annotations(assignment.allocation, now_ns=time.time_ns())
        self._state.ledger.asked(pod.uid, self._clock())
        # The ledger says UNANSWERED by now. So it is right even if this task is cancelled during
        # the request.
        await self._kube.bind(seen, assignment.node, annotations)

    def _bound(self, pod: Pending, assignment: Assignment, began_s: float) -> None:
        self._state.ledger.answered(pod.uid)
        attempts = self._state.queue.attempts(pod.uid)
        self._state.queue.forget(pod.uid)
        now_s = self._clock()
        self._metrics.tried(Result.SCHEDULED, now_s - began_s, pod.scheduler)
        self._metrics.bound(now_s - pod.seen_s, attempts)
        self._reports.bound(pod, assignment.node)

    def _not_bound(
        self, pod: Pending, assignment: Assignment, began_s: float, error: KubeError
    ) -> None:
        # The request may still arrive: the time that `look` waits starts here.
        if not is_certain(error):
            self._state.ledger.asked(pod.uid, self._clock())
        elif assignment.knowledge is Knowledge.ASSUMED:
            self._state.refused(pod.uid)
        else:
            # UNANSWERED: an earlier Binding may still arrive, so this refusal proves nothing. But
            # it did nothing either: the time counts on from that earlier one.
            self._state.ledger.asked(pod.uid, assignment.asked_s)
        if isinstance(error, Refused) and error.code not in _NOT_FOR_THE_USER:
            words = f"binding rejected: {error}"
            self._reports.waits(pod, lambda: words, SCHEDULER_ERROR)
        log.warning("not bound", extra={"pod": pod.shown, "error": str(error)})
        self._again(pod, began_s)

    def _again(self, pod: Pending, began_s: float) -> None:
        self._metrics.tried(Result.ERROR, self._clock() - began_s, pod.scheduler)
        self._state.queue.back_off(pod.uid, self._clock())
        # The scheduling loop may sleep until an earlier due time: it must see the end of this
        # backoff.
        self._state.wake()

    async def look(self, pod: Pending, assignment: Assignment, began_s: float) -> None:
        """The result of a Binding is unknown: read the pod, and send the same Binding again."""
        try:
            found = await self._kube.get(PODS, pod.request.name, pod.request.namespace)
            if found["metadata"]["uid"] != pod.uid or found["spec"].get("nodeName"):
                # The watch will report the same, and only the watch changes the ledger: the answer
                # to this read may be older than events that were handled already.
                self._state.queue.back_off(pod.uid, self._clock())
                return
            # asked_s is 0 if no answer was lost (a Conflict led here): then the same Binding is
            # sent again.
            if assignment.asked_s and self._clock() - assignment.asked_s > LATEST_S:
                self._state.refused(pod.uid)
                self._state.queue.back_off(pod.uid, self._clock())
                return
            await self._ask(pod, assignment, found)
        # No Binding of any age can succeed: it names the uid of a pod that is gone.
        except NotFound:
            self._state.refused(pod.uid)
        except KubeError as error:
            self._not_bound(pod, assignment, began_s, error)
        else:
            self._bound(pod, assignment, began_s)
