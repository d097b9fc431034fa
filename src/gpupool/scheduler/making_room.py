"""RoomMaker: preemption. Pods of lower priority leave nodes so that a pod, or a group, fits there.

Room that is being cleared is reserved for the pods that preempted (`PreemptionClaims`). Other pods
find it taken; those of higher priority may use it, but only if they fit nowhere else. A pod that
has lost its room that way preempts again.

Victims may leave more room than their pod needs. What is left is claimed by the next pod that would
otherwise preempt, in the same way and without more victims.

Nothing here awaits, except `_clear`, which is run as a write.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import reserved_uid
from gpupool.engine.decide import Placement, Unschedulable, decide_nominated, decide_on
from gpupool.engine.gang import GangUnschedulable, Placements, decide_gang, size_of
from gpupool.engine.node_state import Held
from gpupool.engine.preempt import NoPreemption
from gpupool.engine.preempt_gang import Room, orders, preempt_gang
from gpupool.engine.trial import Trial, trial
from gpupool.scheduler.beside_claims import (
    decide_beside,
    decide_gang_beside,
    decide_planned,
    lower_claims,
    release_lower,
)
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.metrics import Metrics
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.preemption import Evictor
from gpupool.scheduler.preemption_claims import PreemptionClaim
from gpupool.scheduler.report import SCHEDULER_ERROR, Reports
from gpupool.scheduler.writes import Write

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class RoomMaker:
    state: ClusterState
    evictor: Evictor
    reports: Reports
    metrics: Metrics
    clock: Callable[[], float]

    # -- decisions beside claims -------------------------------------------------------------

    def decide(self, pod: Pending) -> Placement | Unschedulable:
        if pod.controller in self.state.planned_moves and not pod.nominated:
            planned = decide_planned(self.state, pod.request, pod.controller)
            if planned is not None:
                return planned
        return decide_beside(self.state, pod.request, pod.nominated)

    def leaves_place(self, pod: Pending, found: Placement) -> bool:
        """Whether a small pod leaves the place that was found to larger ones. Not if victims left
        for it there, or a plan of moves wants it there, and not to pods that it would evict later.
        """
        state = self.state
        return (
            found.node != pod.nominated
            and not self._is_planned(pod, found.node)
            and state.kept_room.leaves_place(pod, found, state.policy)
            and all(
                each.request.priority >= pod.request.priority for each in state.pending.values()
            )
        )

    def _is_planned(self, pod: Pending, node: str) -> bool:
        planned = self.state.planned_moves
        return pod.controller in planned and any(
            wish.node == node for wish in planned.of(pod.controller, pod.uid)
        )

    def decide_group(self, pods: Sequence[Pending], least: int) -> Placements | GangUnschedulable:
        return decide_gang_beside(self.state, [pod.request for pod in pods], least)

    def took(self, pods: Sequence[Pending], nodes: Collection[str]) -> set[str]:
        """These pods got room on these nodes: end the claims for which too little is left.

        Returns the victims that were leaving for those.
        """
        claims, left = self.state.preemption_claims, set()
        for uid in lower_claims(self.state, [pod.request for pod in pods]):
            claim = claims.get(uid)
            if claim is None or not claims.is_reserved(uid) or claim.placement.node not in nodes:
                continue
            with self._cleared([self.state.pending[uid]]):
                found = self._on_its_node(claim)
            if isinstance(found, Placement):
                claims.move(uid, found)
            else:
                left |= claim.own
                self.state.drop_preemption_claim(uid)
        return left

    # -- the search for victims --------------------------------------------------------------

    def search(self, pod: Pending) -> Room | None:
        """None: no preemption, or the pod waits for victims that are leaving already."""
        if self._waits_for_victims([pod]):
            return None
        # A quick check first, because most pods cannot preempt anybody.
        lowest = self.state.ledger.lowest_priority()
        if lowest is None or pod.request.priority <= lowest or not pod.request.may_preempt:
            return None
        found = self.preempt(pod)
        return found if isinstance(found, Room) else None

    def search_group(
        self, waiting: Sequence[Pending], least: int
    ) -> tuple[list[Pending], Room] | None:
        """Room for as many of these pods as the group needs, and for which of them; all or nothing.

        None as in `search`.
        """
        claims = self.state.preemption_claims
        # Those with claims first, or victims would have left for nothing; then the smallest ones.
        chosen = sorted(
            waiting,
            key=lambda pod: (_can_start_nowhere(pod), pod.uid not in claims, size_of(pod.request)),
        )
        pods = chosen[:least]
        if self._waits_for_victims(pods):
            return None
        lowest = self.state.ledger.lowest_priority()
        if lowest is None or max(pod.request.priority for pod in waiting) <= lowest:
            return None
        cluster, policy = self.state.cluster, self.state.policy
        requests = [pod.request for pod in waiting]
        found = self._soon(lambda: decide_gang(cluster, requests, policy, least))
        if isinstance(found, dict):
            pods = [pod for pod in chosen if pod.uid in found][:least]
            soon = self._left_for(pods, [found[pod.uid] for pod in pods])
            return (pods, soon) if soon is not None else None
        # Small members may have too low a priority to evict anybody.
        highest = sorted(chosen, key=lambda p: (_can_start_nowhere(p), -p.request.priority))[:least]
        return self._preempt_for(pods) or (self._preempt_for(highest) if highest != pods else None)

    def _preempt_for(self, pods: list[Pending]) -> tuple[list[Pending], Room] | None:
        room = self._preempt(pods)
        return (pods, room) if isinstance(room, Room) else None

    def is_being_cleared(self, pod: Pending) -> bool:
        return pod.uid in self.state.preemption_claims

    def _waits_for_victims(self, pods: Sequence[Pending]) -> bool:
        """Whether the pods will fit where they have claims. If not, the claims are dropped: the
        node may be unreachable by now, its card ill, or evictions failed.
        """
        claims = [self.state.preemption_claims.get(pod.uid) for pod in pods]
        kept = [claim for claim in claims if claim is not None and not claim.failed]
        if not any(claims):
            return False
        if len(kept) == len(pods) and self._keep(pods, [c.placement.node for c in kept]):
            return True
        for pod in pods:
            self.state.drop_preemption_claim(pod.uid)
        return False

    def _keep(self, pods: Sequence[Pending], nodes: Sequence[str]) -> bool:
        """Whether the pods will fit on these nodes, where they have claims.

        A card of theirs may be ill by now, and the others promised to pods of lower priority: those
        are told at once, or they would wait, and evict others, for room that they will not get.
        """
        beside = self._would_fit(pods, nodes, beside_lower=True)
        if beside is not None and not any(self._is_ill(pod.uid) for pod in pods):
            return True
        found = beside or self._would_fit(pods, nodes)
        if found is None:
            return False
        for pod, placement in zip(pods, found, strict=True):
            self.state.preemption_claims.move(pod.uid, placement)
        self._take_over(pods, found)
        return True

    def leave_ill_cards(self) -> None:
        """Before others are tried, who would take the room that is left. A claim that finds no
        other cards on its node ends, and its pod looks anew.
        """
        claims, pending = self.state.preemption_claims, self.state.pending
        shaken = [uid for node in claims.changed_nodes() for uid in claims.on(node)]
        ill = [pending[uid] for uid in shaken if uid in pending and self._is_ill(uid)]
        for pod in sorted(ill, key=lambda pod: -pod.request.priority):
            claim = claims.get(pod.uid)
            if claim is not None and not self._keep([pod], [claim.placement.node]):
                self.state.drop_preemption_claim(pod.uid)

    def _is_ill(self, uid: str) -> bool:
        """Whether a card that the pod has a claim on takes no pods any more."""
        claim = self.state.preemption_claims.get(uid)
        node = self.state.cluster.state(claim.placement.node) if claim is not None else None
        if claim is None or node is None:
            return False
        usable = {card.card.uuid for card in node.cards if card.usable}
        containers = claim.placement.allocation.containers
        return any(share.uuid not in usable for each in containers for share in each.shares)

    def _would_fit(
        self, pods: Sequence[Pending], nodes: Sequence[str], *, beside_lower: bool = False
    ) -> list[Placement] | None:
        """Where, when all victims have gone. `beside_lower`: beside claims of lower priority."""
        node_of = dict(zip((pod.uid for pod in pods), nodes, strict=True))
        for order in orders([pod.request for pod in pods]):
            with self._cleared(pods, beside_lower=beside_lower) as trying:
                found = self._each_on(order, node_of, trying)
            if found is not None:
                return [found[pod.uid] for pod in pods]
        return None

    def _each_on(
        self, pods: Sequence[PodRequest], node_of: Mapping[str, str], trying: Trial
    ) -> Placements | None:
        placements: Placements = {}
        for pod in pods:
            found = decide_on(self.state.cluster, pod, self.state.policy, (node_of[pod.uid],))
            if not isinstance(found, Placement):
                return None
            trying.hold(pod, *found)
            placements[pod.uid] = found
        return placements

    def preempt(self, pod: Pending) -> Room | NoPreemption | None:
        """None: the pod will fit soon, and nobody leaves for it."""
        cluster, policy, request = self.state.cluster, self.state.policy, pod.request
        found = self._soon(lambda: decide_nominated(cluster, request, policy, pod.nominated))
        if isinstance(found, Placement):
            return self._left_for([pod], [found])
        return self._preempt([pod])

    def _soon(self, decide: Callable[[], Found]) -> Found | None:
        """What is found without more victims, when those of all claims have gone."""
        if not self.state.cluster.reserved:
            return None
        with self.later():
            return decide()

    def _left_for(self, pods: Sequence[Pending], placements: Sequence[Placement]) -> Room | None:
        """Room that preemptions of others will leave. It is claimed as well, or pods of lower
        priority would take parts of it before the last victim has gone.

        None: it is to be waited for without a claim. A reservation of an extender is in the way,
        for seconds; or a pod that must not preempt may keep nobody off; or a pod will fit only
        beside one that has no node yet.
        """
        nodes = [placement.node for placement in placements]
        if (
            all(pod.request.may_preempt for pod in pods)
            and not self._is_reserved_by_an_extender(nodes)
            and self._would_fit(pods, nodes) is not None
        ):
            return Room(tuple(placements), ((),) * len(pods))
        return None

    def _is_reserved_by_an_extender(self, nodes: Collection[str]) -> bool:
        cluster, claims = self.state.cluster, self.state.preemption_claims
        kept = self.state.kept_room
        others = (
            cluster.held(reserved_uid(uid))
            for uid in cluster.reserved
            if uid not in claims and uid not in kept
        )
        return any(held is not None and held.node in nodes for held in others)

    def _preempt(self, pods: Sequence[Pending]) -> Room | NoPreemption:
        state = self.state
        with self._cleared(pods):
            return preempt_gang(
                state.cluster,
                [pod.request for pod in pods],
                state.policy,
                tuple(state.budgets.values()),
                state.spared.now(self.clock()),
                {pod.uid: pod.nominated for pod in pods if self._has_begun(pod)},
            )

    def _has_begun(self, pod: Pending) -> bool:
        """Whether pods are leaving the nominated node for it: an earlier leader, or an earlier try,
        did not get to the last victim.
        """
        node = self.state.cluster.state(pod.nominated) if pod.nominated else None
        return node is not None and any(
            held.pod.preempted and held.pod.priority < pod.request.priority
            for held in node.pods.values()
        )

    @contextmanager
    def _cleared(self, pods: Sequence[Pending], *, beside_lower: bool = False) -> Iterator[Trial]:
        """A trial in which the victims of all claims have gone, and the claims of these pods and,
        unless `beside_lower`, of those with a lower priority are not there.
        """
        with self.later() as trying:
            for pod in pods:
                trying.release(reserved_uid(pod.uid))
            if not beside_lower:
                release_lower(self.state, [pod.request for pod in pods], trying)
            yield trying

    @contextmanager
    def later(self) -> Iterator[Trial]:
        """A trial in which the victims of all claims have gone, and reservations of an extender
        have ended: nobody is evicted because of those.
        """
        claims, cluster = self.state.preemption_claims, self.state.cluster
        with trial(cluster) as trying:
            spared = self.state.spared.now(self.clock())
            for uid in claims.leaving():
                if uid not in spared:  # it takes too long, or nobody may evict it
                    trying.release(uid)
            for uid in list(cluster.reserved):
                claim = claims.get(uid)
                if claim is None and uid not in self.state.kept_room:
                    trying.release(reserved_uid(uid))
                elif claim is not None:
                    trying.reserve(claim.request, *claim.placement)
            yield trying

    def _on_its_node(self, claim: PreemptionClaim) -> Placement | Unschedulable:
        node = claim.placement.node
        return decide_on(self.state.cluster, claim.request, self.state.policy, (node,))

    # -- evictions ---------------------------------------------------------------------------

    def make(self, pods: Sequence[Pending], room: Room) -> Write:
        """Claim the room. The write evicts the victims; until then the pods are not tried."""
        cluster, claims, now_s = self.state.cluster, self.state.preemption_claims, self.clock()
        victims = [[held for uid in part if (held := cluster.held(uid))] for part in room.victims]
        for pod in pods:  # a claim takes the place of what was kept for it
            self.state.drop_kept_room(pod.uid)
        for pod, placement, own in zip(pods, room.placements, victims, strict=True):
            claims.make(pod.request, placement, own, now_s)
            claims.share(pod.uid)
        self._take_over(pods, room.placements)
        # Who waits for pods to end by themselves does not get what others evict them for.
        for uid in self.state.kept_room.waiting_for(claims.leaving()):
            self.state.drop_kept_room(uid)
        evicted = [held for own in victims for held in own]
        if evicted:
            self.metrics.preemptions.inc()
            self.metrics.victims.observe(len(evicted))
        for pod in pods:
            self.state.queue.placed(pod.uid)
        return partial(self._clear, pods, room, evicted)

    def _take_over(self, pods: Sequence[Pending], placements: Sequence[Placement]) -> None:
        """End the claims for which too little is left. Their victims leave for these pods now."""
        cluster, claims, now_s = self.state.cluster, self.state.preemption_claims, self.clock()
        left = self.took(pods, {placement.node for placement in placements})
        for pod, placement in zip(pods, placements, strict=True):
            # Each of them counts for one claim only.
            here = [h for uid in left if (h := cluster.held(uid)) and h.node == placement.node]
            left -= {held.pod.uid for held in here}
            if here:
                claims.wait_for(pod.uid, here, now_s)
        claims.join([pod.uid for pod in pods])

    async def _clear(self, pods: Sequence[Pending], room: Room, victims: list[Held]) -> None:
        nodes = [placement.node for placement in room.placements]
        failed = await self.evictor.clear(list(zip(pods, nodes, strict=True)), victims)
        if failed is None:
            for pod in pods:
                self.state.try_again(pod.uid)
            if victims:  # others may need fewer victims now, or none
                self.state.wake()
            return
        words = f"preemption failed: {failed.message}"
        self.state.spared.add(failed.refused, self.clock())
        for pod in pods:
            self.reports.waits(pod, lambda: words, SCHEDULER_ERROR)
            self.state.queue.back_off(pod.uid, self.clock())
            if failed.begun:
                # The room of those that left stays reserved until the pod is tried again.
                self.state.preemption_claims.fail(pod.uid)
            else:
                self.state.drop_preemption_claim(pod.uid)
        self.state.wake()

    def withdraw(self, pods: Sequence[Pending]) -> list[Write]:
        """Of those for which no room is being cleared any more: the nominations."""
        claims = self.state.preemption_claims
        late = [pod for pod in pods if pod.nominated and pod.uid not in claims]
        return [partial(self.evictor.withdraw, pod) for pod in late]


def _can_start_nowhere(pod: Pending) -> bool:
    return bool(pod.request.unsupported or pod.request.waits_for)
