"""trial: change what is held, evaluate the result, and undo all changes.

The nodes are entered in the change log twice, so cached verdicts are renewed both times. Nothing
may await inside a trial: others would see a state that does not exist.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpupool.core.gpu import Allocation
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel, reserved_uid


class Trial:
    """Holds and releases that are undone, last first, when the trial ends."""

    def __init__(self, cluster: ClusterModel) -> None:
        self._cluster = cluster
        self._undo: list[Callable[[], object]] = []

    def hold(self, pod: PodRequest, node: str, allocation: Allocation) -> None:
        """For a pod that is not held yet."""
        # The undo only releases: it would lose an earlier hold of the same pod.
        assert self._cluster.held(pod.uid) is None
        self._cluster.hold(pod, node, allocation)
        self._undo.append(lambda: self._cluster.release(pod.uid))

    def reserve(self, pod: PodRequest, node: str, allocation: Allocation) -> None:
        """All of this room, whoever holds it. Replaces the reservation of the pod."""
        self.release(reserved_uid(pod.uid))
        self._cluster.reserve(pod, node, allocation)
        self._undo.append(lambda: self._cluster.release(reserved_uid(pod.uid)))

    def release(self, uid: str) -> None:
        held = self._cluster.held(uid)
        if held is not None:
            self._cluster.release(uid)
            self._undo.append(lambda: self._cluster.take_again(held))

    def end(self) -> None:
        while self._undo:
            self._undo.pop()()


@contextmanager
def trial(cluster: ClusterModel) -> Iterator[Trial]:
    trying = Trial(cluster)
    try:
        yield trying
    finally:
        trying.end()
