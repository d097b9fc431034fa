"""Elected: runs the scheduler while this process is the leader.

There is one Lease for all schedulers and extenders of a cluster, whatever scheduler names they
serve: one of them decides about GPUs at a time. The leader serves the names of all candidates.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from gpupool.contract import names
from gpupool.scheduler.run import Scheduler, SchedulerSettings
from gpupool.scheduler.takeover import void_earlier_bindings
from kubeclient.client import Kube
from kubeclient.lease import Candidacy, Leadership, LeaseKey, Term

# Its holder decides about the GPUs of the cluster, as scheduler or as extender.
LEASE = LeaseKey(
    names.LEASE_NAMESPACE,
    names.SCHEDULER_LEASE,
    names.ANNOTATION_SERVES,
    names.ANNOTATION_SERVED_BEFORE,
    names.ANNOTATION_WANTED_BY,
)

NOT_FENCED = "NotFenced"
_NOT_FENCED_MESSAGE = (
    "The scheduler has changed, and this pod could not be written to. If the scheduler before it"
    " still sends a Binding of this pod, cards may be given out twice until this pod has a node."
    " Find out what refuses updates of pods/status, for example a webhook."
)

Work = Callable[[Scheduler], Coroutine[Any, Any, None]]


class Elected:
    def __init__(
        self,
        kube: Kube,
        policy: str,
        candidacy: Candidacy,
        work: Work = Scheduler.run,
        *,
        keeps_room: bool = True,
    ) -> None:
        """`work` runs the scheduler; the extender runs more beside it."""
        self._kube = kube
        self._policy = policy
        self._keeps_room = keeps_room
        self._work = work
        self._leadership = Leadership(kube, candidacy)
        self._is_settled = True
        self.current: Scheduler | None = None  # None: not the leader, or not started yet

    def metrics_text(self) -> str:
        # Imported here: the scheduler of a local cluster serves no metrics.
        from gpupool.scheduler.metrics import standby_text

        return self.current.metrics_text() if self.current else standby_text()

    @property
    def holder(self) -> str:
        """The identity of the leader that was last seen."""
        return self._leadership.holder

    @property
    def is_sure(self) -> Callable[[], bool]:
        return self._leadership.is_sure

    async def run(self) -> None:
        """Until cancelled."""
        await self._leadership.run(self._term, lambda: self._is_settled)

    async def _term(self, term: Term) -> None:
        # Until earlier Bindings are void, giving up the Lease would hide them from the next leader.
        self._is_settled = not term.inherits
        unmarked = await void_earlier_bindings(self._kube, term)
        settings = SchedulerSettings(
            self._policy, term.serves, may_act=self.is_sure, keeps_room=self._keeps_room
        )
        scheduler = self.current = Scheduler(self._kube, settings)
        for pod in unmarked:
            # Kubernetes leaves out both in the items of a list, and an event needs them.
            about = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}
            scheduler.warn(about, NOT_FENCED, _NOT_FENCED_MESSAGE)
        try:
            await self._work(scheduler)
        finally:
            # False if a Binding has no answer yet: the Lease then expires, and the next leader
            # fences that Binding.
            self._is_settled = scheduler.state.ledger.is_settled()
            self.current = None
