"""Ledger: who holds what of the cluster, and how we know.

    assume    a decision was made; nobody else gets it from now on
    seen      the API shows the pod on its node: so it is, whatever we thought
    refused   the API server said no: given back
    asked     the API server is being asked: it may have happened from now on, and is kept until
              there is an answer, the API shows it, or somebody has looked
    answered  the API server said yes
    resized   a running pod is to have another share: held before the API is asked for it
    gone      the pod has ended, or is not there any more: given back

Everything in it comes from the API or is on its way there, so a new ledger that has seen all pods
and nodes is the same as an old one. Terminating pods hold their share until they are gone.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from gpupool.core.gpu import Allocation
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel


class Knowledge(StrEnum):
    ASSUMED = "assumed"
    UNANSWERED = "unanswered"
    SEEN = "seen"


@dataclass(frozen=True, slots=True)
class Assignment:
    node: str
    allocation: Allocation
    knowledge: Knowledge
    asked_s: float = 0.0  # UNANSWERED: when the API server was asked, or gave no answer


class Ledger:
    def __init__(self, cluster: ClusterModel) -> None:
        self.cluster = cluster
        self._assignments: dict[str, Assignment] = {}
        self._priorities: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._assignments)

    def assignment(self, uid: str) -> Assignment | None:
        return self._assignments.get(uid)

    def lowest_priority(self) -> int | None:
        """Of all pods that hold something."""
        return min(self._priorities, default=None)

    def assignments(self) -> Iterator[tuple[str, Assignment]]:
        return iter(self._assignments.items())

    def assume(self, pod: PodRequest, node: str, allocation: Allocation) -> None:
        assert pod.uid not in self._assignments, f"{pod.name} is assigned already"
        self._hold(pod, Assignment(node, allocation, Knowledge.ASSUMED))

    def seen(self, pod: PodRequest, node: str, allocation: Allocation) -> bool:
        """Whether it is news: held by nobody so far, or held elsewhere."""
        known = self._assignments.get(pod.uid)
        assignment = Assignment(node, allocation, Knowledge.SEEN)
        self._hold(pod, assignment)
        return known is None or (known.node, known.allocation) != (node, allocation)

    def resized(self, uid: str, allocation: Allocation) -> None:
        """Of a pod that was seen on its node: it holds so much from now on."""
        known, held = self._assignments[uid], self.cluster.held(uid)
        assert held is not None
        assert known.knowledge is Knowledge.SEEN
        self._hold(held.pod, Assignment(known.node, allocation, Knowledge.SEEN))

    def asked(self, uid: str, now_s: float) -> None:
        self._know(uid, Knowledge.UNANSWERED, now_s)

    def answered(self, uid: str) -> None:
        self._know(uid, Knowledge.ASSUMED)

    def is_settled(self) -> bool:
        """Whether nothing that was asked for may still happen."""
        return not any(
            assignment.knowledge is Knowledge.UNANSWERED
            for assignment in self._assignments.values()
        )

    def _know(self, uid: str, knowledge: Knowledge, asked_s: float = 0.0) -> None:
        known = self._assignments.get(uid)
        if known is not None and known.knowledge is not Knowledge.SEEN:
            self._assignments[uid] = Assignment(known.node, known.allocation, knowledge, asked_s)

    def refused(self, uid: str) -> bool:
        """Whether anything was given back. What was seen in the meantime stays."""
        known = self._assignments.get(uid)
        if known is None or known.knowledge is Knowledge.SEEN:
            return False
        return self.gone(uid)

    def gone(self, uid: str) -> bool:
        """Whether anything was given back."""
        if self._assignments.pop(uid, None) is None:
            return False
        self._count(uid, -1)
        self.cluster.release(uid)
        return True

    def _hold(self, pod: PodRequest, assignment: Assignment) -> None:
        if pod.uid in self._assignments:
            self._count(pod.uid, -1)
        self._assignments[pod.uid] = assignment
        self.cluster.hold(pod, assignment.node, assignment.allocation)
        self._count(pod.uid, 1)

    def _count(self, uid: str, change: int) -> None:
        held = self.cluster.held(uid)
        if held is not None:
            self._priorities[held.pod.priority] += change
            if not self._priorities[held.pod.priority]:
                del self._priorities[held.pod.priority]
