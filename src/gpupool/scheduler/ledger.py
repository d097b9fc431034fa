"""Ledger: which pod holds which node and cards, and how we know it.

    assume    a decision was made: the node and cards are taken from now on
    asked     the Binding is being sent: it may happen from now on, whatever the answer says
    answered  the API server accepted the Binding
    refused   the API server certainly refused it: released
    seen      the watch shows the pod on its node: that is the truth, and replaces all of the above
    resized   a running pod is about to get another share: held before the write is sent
    gone      the pod has ended or was deleted: released

Why this never overcommits a card, as long as one scheduler decides:

- Decisions are made one after the other, and `assume` takes the cards before the next decision.
  There is no await between decision and `assume`.
- Whatever may have happened at the API server is held. An assignment is released only when it
  certainly did not happen (`refused`) or is certainly over (`gone`). In doubt it stays held; the
  price is capacity that is idle for a while, never a card that is given out twice.
- What the watch shows wins over what we assumed, even if it is more than a node has: another
  writer did it, and a hold is a fact.

Two schedulers at a time are excluded by the Lease and the fencing of Bindings (`bind.py`).

Everything here comes from the API or is on its way there. So the ledger of a new leader, once it
has seen all nodes and pods, equals that of the old one. Terminating pods hold their share until
they are gone: their processes still use it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from gpupool.core.gpu import Allocation
from gpupool.core.pods import AttachedVolume, PodRequest
from gpupool.engine.cluster import ClusterModel


class Knowledge(StrEnum):
    ASSUMED = "assumed"  # decided; nothing is in flight, or the API server has accepted it
    UNANSWERED = "unanswered"  # a Binding is in flight, or its answer was lost
    SEEN = "seen"  # the watch shows the pod on its node


@dataclass(frozen=True, slots=True)
class Assignment:
    """A pod's node and cards."""

    node: str
    allocation: Allocation
    knowledge: Knowledge
    asked_s: float = 0.0  # UNANSWERED: when the Binding was sent, or its answer was lost


class Ledger:
    def __init__(self, cluster: ClusterModel) -> None:
        self.cluster = cluster
        self._assignments: dict[str, Assignment] = {}
        # Kept up to date with every hold: each pod that fits nowhere asks for the lowest priority,
        # and a scan of all assignments for each of them would be slow.
        self._priorities: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._assignments)

    def assignment(self, uid: str) -> Assignment | None:
        return self._assignments.get(uid)

    def lowest_priority(self) -> int | None:
        """Among all pods that hold something: no pod of this priority or lower can preempt."""
        return min(self._priorities, default=None)

    def assignments(self) -> Iterator[tuple[str, Assignment]]:
        return iter(self._assignments.items())

    def assume(self, pod: PodRequest, node: str, allocation: Allocation) -> None:
        # A second decision would move the pod while its first Binding may still arrive. Callers
        # look for an assignment first, and use that one again.
        assert pod.uid not in self._assignments, f"{pod.name} is assigned already"
        self._hold(pod, Assignment(node, allocation, Knowledge.ASSUMED))

    def seen(self, pod: PodRequest, node: str, allocation: Allocation) -> bool:
        """Whether this is news: the pod was not held so far, or held on another node or cards."""
        # Compared below without `knowledge`: the confirmation of our own Binding is no news, and
        # must not be reported as the work of another scheduler.
        known = self._assignments.get(pod.uid)
        assignment = Assignment(node, allocation, Knowledge.SEEN)
        self._hold(pod, assignment)
        return known is None or (known.node, known.allocation) != (node, allocation)

    def resized(self, uid: str, allocation: Allocation) -> None:
        """A pod that was seen on its node holds this allocation from now on."""
        known, held = self._assignments[uid], self.cluster.held(uid)
        assert held is not None
        assert known.knowledge is Knowledge.SEEN
        self._hold(held.pod, Assignment(known.node, allocation, Knowledge.SEEN))

    def attached(self, uid: str, volumes: tuple[AttachedVolume, ...]) -> None:
        """A pod with a node uses these volumes: its claims were read after it, or have changed."""
        known, held = self._assignments.get(uid), self.cluster.held(uid)
        if known is not None and held is not None and held.pod.attached != volumes:
            self._hold(replace(held.pod, attached=volumes), known)

    def asked(self, uid: str, now_s: float) -> None:
        self._know(uid, Knowledge.UNANSWERED, now_s)

    def answered(self, uid: str) -> None:
        self._know(uid, Knowledge.ASSUMED)

    def is_settled(self) -> bool:
        """Whether no Binding of unknown result exists. Then the Lease can be given up."""
        return not any(
            assignment.knowledge is Knowledge.UNANSWERED
            for assignment in self._assignments.values()
        )

    def _know(self, uid: str, knowledge: Knowledge, asked_s: float = 0.0) -> None:
        known = self._assignments.get(uid)
        # The watch may be faster than the answer to the Binding. SEEN is final: a late answer
        # changes nothing.
        if known is not None and known.knowledge is not Knowledge.SEEN:
            self._assignments[uid] = Assignment(known.node, known.allocation, knowledge, asked_s)

    def refused(self, uid: str) -> bool:
        """Whether anything was released. A pod that the watch has shown meanwhile stays held."""
        known = self._assignments.get(uid)
        if known is None or known.knowledge is Knowledge.SEEN:
            return False
        return self.gone(uid)

    def gone(self, uid: str) -> bool:
        """Whether anything was released."""
        if self._assignments.pop(uid, None) is None:
            return False
        # Before the release: afterwards the priority of the pod cannot be looked up any more.
        self._count(uid, -1)
        self.cluster.release(uid)
        return True

    def _hold(self, pod: PodRequest, assignment: Assignment) -> None:
        # First, while the cluster still has the old pod: `hold` replaces it, and with it the
        # priority.
        if pod.uid in self._assignments:
            self._count(pod.uid, -1)
        self._assignments[pod.uid] = assignment
        self.cluster.hold(pod, assignment.node, assignment.allocation)
        self._count(pod.uid, 1)

    def _count(self, uid: str, change: int) -> None:
        held = self.cluster.held(uid)
        if held is not None:
            self._priorities[held.pod.priority] += change
            # A count of zero must not stay: `lowest_priority` takes the minimum of the keys.
            if not self._priorities[held.pod.priority]:
                del self._priorities[held.pod.priority]
