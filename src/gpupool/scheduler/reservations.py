"""Reservations: the best node of each pod that kube-scheduler has asked about, held for seconds.

kube-scheduler does not tell an extender which node it chose until it calls bind. Without a
reservation, pods that are scheduled in the meantime would all get the same best node. Reservations
are only a hint: if a pod fits nowhere because of them, they are ignored.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from gpupool.core.gpu import Allocation
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel, reserved_uid
from gpupool.engine.trial import trial

LONGEST_S = 5.0


class Reservations:
    def __init__(self, cluster: ClusterModel) -> None:
        self._cluster = cluster
        self._until_s: dict[str, float] = {}  # uid -> when it expires; oldest first

    def __contains__(self, uid: str) -> bool:
        return uid in self._until_s

    def make(self, pod: PodRequest, node: str, allocation: Allocation, now_s: float) -> None:
        self.end(pod.uid)
        # In the cluster, not in the ledger: a reservation is no decision, and no Binding follows.
        self._cluster.reserve(pod, node, allocation)
        self._until_s[pod.uid] = now_s + LONGEST_S

    def end(self, uid: str) -> bool:
        """Whether the pod had a reservation."""
        if self._until_s.pop(uid, None) is None:
            return False
        self._cluster.unreserve(uid)
        return True

    def __len__(self) -> int:
        return len(self._until_s)

    def expire(self, now_s: float) -> bool:
        """Whether any reservation has expired."""
        over = [uid for uid, until_s in self._until_s.items() if until_s <= now_s]
        for uid in over:
            self.end(uid)
        return bool(over)

    @contextmanager
    def ignored(self) -> Iterator[None]:
        """Inside the context the cluster has no reservations."""
        with trial(self._cluster) as trying:
            for uid in self._until_s:
                trying.release(reserved_uid(uid))
            yield
