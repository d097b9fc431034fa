"""RoomMaker: preemption. Pods of lower priority leave a node so that a pod fits there.

Nothing here awaits, except `_clear`, which is run as a write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gpupool.engine.decide import Placement, Unschedulable, decide, decide_on
from gpupool.engine.node_state import Held
from gpupool.engine.preempt import NoPreemption, Preemption, preempt
from gpupool.engine.trial import Trial, trial
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.metrics import Metrics
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.preemption import Evictor
from gpupool.scheduler.report import SCHEDULER_ERROR, Reports
from gpupool.scheduler.writes import Write
from kubeclient.errors import KubeError


@dataclass(frozen=True, slots=True)
class RoomMaker:
    state: ClusterState
    evictor: Evictor
    reports: Reports
    metrics: Metrics
    clock: Callable[[], float]

    def decide(self, pod: Pending) -> Placement | Unschedulable:
        cluster, policy = self.state.cluster, self.state.policy
        # The nominated node first, as in kube-scheduler: victims were evicted there for this pod.
        if pod.nominated:
            decision = decide_on(cluster, pod.request, policy, (pod.nominated,))
            if isinstance(decision, Placement):
                return decision
        return decide(cluster, pod.request, policy)

    def make(self, pod: Pending, room: Preemption) -> Write:
        """Claim the room. The write evicts the victims."""
        # Read now: until the write runs, some victims may have gone.
        held = [self.state.cluster.held(uid) for uid in room.victims]
        victims = [each for each in held if each is not None]
        # Made before anything awaits: the room of a victim that goes from now on is kept.
        self.state.preemption_claims.make(pod.uid, room.node, room.victims, self.clock())
        self.metrics.preemptions.inc()
        self.metrics.victims.observe(len(victims))
        return partial(self._clear, pod, room, victims)

    def search(self, pod: Pending) -> Preemption | None:
        """None: no preemption. A quick check first, because most pods cannot preempt anybody."""
        lowest = self.state.ledger.lowest_priority()
        if lowest is None or pod.request.priority <= lowest or self.is_being_cleared(pod):
            return None
        found = self.preempt(pod)
        return found if isinstance(found, Preemption) else None

    def preempt(self, pod: Pending) -> Preemption | NoPreemption | None:
        """None: preemptions that are under way will leave enough room for this pod as well."""
        budgets = tuple(self.state.budgets.values())
        with trial(self.state.cluster) as trying:
            if self._complete_claims(trying) and isinstance(self.decide(pod), Placement):
                return None
            return preempt(self.state.cluster, pod.request, self.state.policy, budgets)

    def _complete_claims(self, trying: Trial) -> bool:
        """In the trial: all victims have gone, and the pods that preempted them are placed.

        Returns whether there are any claims.
        """
        for uid, claim in self.state.preemption_claims.items():
            for victim in claim.remaining | claim.gone:
                trying.release(victim)
            # The claimant is placed in the trial too, so that two pods do not count on the same
            # room.
            claimant = self.state.pending.get(uid)
            if claimant is None:
                continue
            found = decide_on(
                self.state.cluster, claimant.request, self.state.policy, (claim.node,)
            )
            if isinstance(found, Placement):
                trying.hold(claimant.request, found.node, found.allocation)
        return bool(self.state.preemption_claims)

    def is_being_cleared(self, pod: Pending) -> bool:
        if pod.uid in self.state.preemption_claims:
            return True
        node = self.state.cluster.state(pod.nominated) if pod.nominated else None
        return node is not None and any(
            held.pod.terminating and held.pod.priority < pod.request.priority
            for held in node.pods.values()
        )

    async def _clear(self, pod: Pending, room: Preemption, victims: list[Held]) -> None:
        try:
            await self.evictor.clear(pod, room.node, victims)
        except KubeError as error:
            words = f"preemption failed: {error}"
            # Some victims may be deleted already. Without the claim their room is free for all,
            # this pod included, which is tried again at once.
            self.reports.waits(pod, lambda: words, SCHEDULER_ERROR)
            self.state.drop_preemption_claim(pod.uid)
            self.state.wake()
