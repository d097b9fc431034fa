"""Line: pods in an order. The first one is found at once; any pod can leave."""

import heapq
from typing import Generic, Protocol, Self, TypeVar

_FEW = 64


class _Ordered(Protocol):
    def __lt__(self, other: Self, /) -> bool: ...


T = TypeVar("T", bound=_Ordered)


class Line(Generic[T]):
    """Lower orders come first."""

    def __init__(self) -> None:
        self._orders: dict[str, T] = {}
        # Nothing is removed from the middle of a heap. Entries of pods that have left, or that
        # have another order now, are skipped when they come up.
        self._heap: list[tuple[T, str]] = []

    def __len__(self) -> int:
        return len(self._orders)

    def add(self, uid: str, order: T) -> None:
        self._orders[uid] = order
        heapq.heappush(self._heap, (order, uid))

    def discard(self, uid: str) -> None:
        self._orders.pop(uid, None)
        # Skipped entries must not pile up behind a pod that stays first for days.
        if len(self._heap) > 2 * len(self._orders) + _FEW:
            self._heap = [(order, uid) for uid, order in self._orders.items()]
            heapq.heapify(self._heap)

    def first(self) -> tuple[T, str] | None:
        while self._heap:
            order, uid = self._heap[0]
            if self._orders.get(uid) == order:
                return order, uid
            heapq.heappop(self._heap)
        return None
