"""Cycle: tries one pod from the queue: a node is assigned, others are preempted, or it is parked.

Nothing here awaits. So no handler of a watch runs between a decision and `assume`, and the decision
is always made from the current state. Writes to the API are returned, and the caller runs them
(`Writes`).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial

from gpupool.engine.card_words import card_summary
from gpupool.engine.decide import Placement, Unschedulable
from gpupool.engine.gang import GangUnschedulable
from gpupool.engine.preempt import NoPreemption
from gpupool.scheduler.bind import Binder
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.groups import Group
from gpupool.scheduler.kept_words import LEFT
from gpupool.scheduler.making_room import RoomMaker
from gpupool.scheduler.metrics import Metrics, Result
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.report import Reports
from gpupool.scheduler.writes import Write

# A message of this age is used again even if the cluster has changed since.
_RECENT_S = 1.0
_MOST_WORDS = 1024
GROUP_PATIENCE_S = 600.0  # after this time the message says for how long the group has waited
BEING_CLEARED = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class Cycle:
    state: ClusterState
    binder: Binder
    room: RoomMaker
    reports: Reports
    metrics: Metrics
    clock: Callable[[], float]
    # Cache of messages by shape: version of the cluster, time, message.
    words: dict[Hashable, tuple[int, float, str]] = field(default_factory=dict)

    def try_pod(self, pod: Pending) -> list[Write]:
        """Try one pod. Returns the writes that follow from the decision."""
        began_s = self.clock()
        kept = self.state.ledger.assignment(pod.uid)
        if kept is not None:  # the result of its Binding is unknown: the same node again
            self.state.queue.placed(pod.uid)
            # Another decision would be wrong: the Binding may have happened, and a Binding cannot
            # be undone.
            return [partial(self.binder.look, pod, kept, began_s)]
        if pod.group is not None:
            return self._try_group(pod.group, pod, began_s)
        return self._try_alone(pod, began_s)

    def _try_alone(self, pod: Pending, began_s: float) -> list[Write]:
        decision = self.room.decide(pod)
        if isinstance(decision, Placement) and not self.room.leaves_place(pod, decision):
            return [self._place(pod, decision, began_s)]
        self._failed(pod, began_s)
        if isinstance(decision, Placement):
            self._park(pod, lambda: LEFT)
            return self.room.withdraw([pod])
        return self._make_room(pod, decision)

    def _place(self, pod: Pending, placement: Placement, began_s: float) -> Write:
        self.metrics.decision_seconds.observe(self.clock() - began_s)
        self.state.assume(pod, placement.node, placement.allocation)
        if pod.controller in self.state.planned_moves:
            self.state.planned_moves.placed(pod.controller, pod.uid, *placement)
        self.room.took([pod], {placement.node})
        assignment = self.state.ledger.assignment(pod.uid)
        assert assignment is not None
        return partial(self.binder.bind, pod, assignment, began_s)

    def _failed(self, pod: Pending, began_s: float) -> None:
        now_s = self.clock()
        self.metrics.decision_seconds.observe(now_s - began_s)
        self.metrics.tried(Result.UNSCHEDULABLE, now_s - began_s, pod.scheduler)

    # -- pods that fit nowhere --------------------------------------------------------------

    def _make_room(self, pod: Pending, no: Unschedulable) -> list[Write]:
        room = self.room.search(pod)
        if room is None:
            self._park(pod, lambda: self._with_room(pod, self._recent_words(pod, no)))
            return self.room.withdraw([pod])
        self.reports.waits(pod, lambda: _message(no))
        return [self.room.make([pod], room)]

    def _recent_words(self, pod: Pending, no: Unschedulable) -> str:
        """The message, from a cache by shape: thousands of pending pods may share one message,
        and on a large cluster making it takes longer than a decision.
        """
        version, now_s = self.state.cluster.version, self.clock()
        shape = pod.shape(self.state.cluster)
        known = self.words.get(shape)
        if known is not None and (known[0] == version or now_s - known[1] < _RECENT_S):
            return known[2]
        if len(self.words) >= _MOST_WORDS:
            self.words.clear()
        words = self._words(pod, no)
        self.words[shape] = (version, now_s, words)
        return words

    def _with_room(self, pod: Pending, words: str) -> str:
        """Beside the message from the cache, which pods share: room is kept for one of them."""
        kept = self.state.kept_room.words(pod.uid)
        return f"{words} {kept}" if words and kept else words

    def _words(self, pod: Pending, no: Unschedulable) -> str:
        message = _message(no)
        if not message or not len(self.state.cluster) or pod.request.unsupported:
            return message
        if self.room.is_being_cleared(pod):
            return f"{message} preemption: {BEING_CLEARED}"
        room = self.room.preempt(pod)
        if isinstance(room, NoPreemption):
            asks = not pod.request.waits_for
            cards = card_summary(self.state.cluster, pod.request) if asks else ""
            return f"{message} preemption: {room.message} {cards}".rstrip()
        return message

    def _park(self, pod: Pending, why: Callable[[], str]) -> None:
        self.reports.waits(pod, why)
        self.state.queue.park(pod.uid, self.clock())

    # -- groups ----------------------------------------------------------------------------

    def _try_group(self, group: Group, pod: Pending, began_s: float) -> list[Write]:
        """Place as many pending members as fit and the group needs, or none of them."""
        missing = self.state.groups.missing(group)
        if missing <= 0:  # a member beyond the minimum is scheduled like a pod without a group
            return self._try_alone(pod, began_s)
        # A member that backs off after an error does not come back earlier because of the others.
        queue, pending = self.state.queue, self.state.pending
        waiting = [
            pending[uid]
            for uid in self.state.groups.waiting(group.key)
            if not queue.is_backing_off(uid)
        ]
        # Members of equal size start in this order; one of higher priority could evict the others.
        waiting.sort(key=lambda pod: (-pod.request.priority, pod.created, pod.uid))
        if len(waiting) < missing:
            return self._park_group(group, waiting, self._too_few(group), began_s)
        answer = self.room.decide_group(waiting, missing)
        if isinstance(answer, GangUnschedulable):
            words = f"{answer.placed} of {missing} pods would find a node. {answer.message}"
            room = self.room.search_group(waiting, missing)
            # Before `make`, which takes those for which room is made out of the queue.
            parked = self._park_group(group, waiting, f": {words}", began_s)
            return [self.room.make(*room)] if room is not None else parked
        writes = [
            self._place(pod, answer[pod.uid], began_s) for pod in waiting if pod.uid in answer
        ]
        # The others did not fit beside them. From now on each is tried alone, and may preempt.
        queue.retry([pod.uid for pod in waiting if pod.uid not in answer])
        return writes

    def _too_few(self, group: Group) -> str:
        here, least = self.state.groups.here(group)
        if here < least:
            return f" waits for its pods: {here} of at least {least} are here."
        return " waits for pods that are tried again after an error."

    def _park_group(
        self, group: Group, waiting: list[Pending], why: str, began_s: float
    ) -> list[Write]:
        self._failed(waiting[0], began_s)
        words = f"pod group {group.namespace}/{group.name}{why}"
        waited_s = began_s - min(pod.seen_s for pod in waiting)
        if waited_s > GROUP_PATIENCE_S:
            words = f"{words} It has waited for {waited_s / 60:.0f} minutes."
        for member in waiting:
            self._park(member, partial(self._with_room, member, words))
        return self.room.withdraw(waiting)


def _message(no: Unschedulable) -> str:
    """Empty if some node fits by now: messages are made late, and the pod will be tried soon."""
    message = no.message
    return "" if message.endswith("available: .") else message
