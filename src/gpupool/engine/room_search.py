"""RoomSearch: `future_room` for one job after the other, a few nodes at a time."""

from collections.abc import Hashable, Sequence

from gpupool.core.pods import PodRequest
from gpupool.engine.future_room import FutureRoom, future_room
from gpupool.engine.room_scan import RoomScan, Search


class NotYet:
    """Not all nodes were looked at: ask again."""


class RoomSearch:
    def __init__(self) -> None:
        self._scan: tuple[Hashable, RoomScan] | None = None
        self.position = 0  # in the log of nodes that changed: what was found last is as of then

    @property
    def is_on(self) -> bool:
        return self._scan is not None

    def stop(self) -> None:
        self._scan = None

    def find(
        self, key: Hashable, pods: Sequence[PodRequest], search: Search, most: int
    ) -> FutureRoom | NotYet | None:
        """`most`: nodes with about so many pods are looked at now. Another key begins anew."""
        if self._scan is None or self._scan[0] != key:
            self._scan = (key, RoomScan(search.cluster, pods))
        scan = self._scan[1]
        if not scan.is_done:
            is_first = not scan.has_begun
            # What follows is a step of its own, unless it is a small cluster.
            if not scan.step(search, most) or not is_first:
                return NotYet()
        self._scan, self.position = None, scan.position
        return future_room(search, pods, scan)
