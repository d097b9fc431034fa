"""Reservations: where pods that were offered nodes will probably go, until they are bound.

kube-scheduler does not tell an extender which node it chose. So the best one is held for a few
seconds, which steers the next pods elsewhere. It only steers: when a pod would find no place
because of reservations, they do not count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from gpupool.core.gpu import Allocation
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.trial import trial

LONGEST_S = 5.0


class Reservations:
    def __init__(self, cluster: ClusterModel) -> None:
        self._cluster = cluster
        self._until_s: dict[str, float] = {}  # uid -> when it ends; in the order of making

    def __contains__(self, uid: str) -> bool:
        return uid in self._until_s

    def make(self, pod: PodRequest, node: str, allocation: Allocation, now_s: float) -> None:
        self.end(pod.uid)
        self._cluster.hold(replace(pod, uid=_name(pod.uid)), node, allocation)
        self._until_s[pod.uid] = now_s + LONGEST_S

    def end(self, uid: str) -> bool:
        """Whether there was one."""
        if self._until_s.pop(uid, None) is None:
            return False
        self._cluster.release(_name(uid))
        return True

    def __len__(self) -> int:
        return len(self._until_s)

    def expire(self, now_s: float) -> bool:
        """Whether any has ended."""
        over = [uid for uid, until_s in self._until_s.items() if until_s <= now_s]
        for uid in over:
            self.end(uid)
        return bool(over)

    @contextmanager
    def ignored(self) -> Iterator[None]:
        """As if there were none."""
        with trial(self._cluster) as trying:
            for uid in self._until_s:
                trying.release(_name(uid))
            yield


def _name(uid: str) -> str:
    """Held under a name of its own: ending it never touches what the pod itself holds."""
    return f"reserved/{uid}"
