"""Queue: pending pods, in the order in which they are tried.

    add -> ACTIVE -> pop -> TRYING -> placed -> BINDING -> forget
             ^ ^              |  |                 |
             | +-- PARKED <---+  |                 |     fits nowhere: until `wake`
             +-- BACKING_OFF <---+-----------------+     an error: until the backoff is over

A state machine without I/O. The time is an argument, in seconds of a monotonic clock.

Pods of one shape are alike to every node: where one does not fit, none does. So a wake-up activates
only the first pod of each shape, and the next one when the first was placed. A change in the
cluster costs as much as there are shapes, not as there are pending pods.

No wake-up is lost: if one comes while a pod is being tried, the pod was judged by an older state.
`park` notices that by the number of the wake-up, and activates the pod again.
"""

import heapq
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum

FIRST_BACK_OFF_S = 1.0
LONGEST_BACK_OFF_S = 10.0
# A safety net: even if a wake-up was missed, every pod is tried again after this time.
LONGEST_PARKED_S = 300.0

Order = tuple[int, str, int]  # lower comes first: minus priority, time of creation, arrival


class State(StrEnum):
    """Values are those of the label `queue` of scheduler_pending_pods."""

    ACTIVE = "active"
    TRYING = "trying"
    BACKING_OFF = "backoff"
    PARKED = "unschedulable"
    BINDING = "binding"


@dataclass(slots=True)
class _Entry:
    order: Order
    shape: Hashable
    depends_on_pods: bool
    state: State = State.ACTIVE
    failures: int = 0
    tried_at_wake: int = 0  # number of the last wake-up when it was popped


class Queue:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._active: list[tuple[Order, str]] = []
        self._backing_off: list[tuple[float, str]] = []
        self._parked: dict[Hashable, list[tuple[Order, str]]] = {}
        self._in_play: Counter[Hashable] = Counter()  # by shape: pods that are ACTIVE or TRYING
        self._dependent: set[Hashable] = set()  # parked shapes whose constraints look at other pods
        self._arrivals = 0
        self._wakes = 0
        self._flush_s = float("inf")

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def counts(self) -> Counter[State]:
        return Counter(entry.state for entry in self._entries.values())

    def add(
        self,
        uid: str,
        shape: Hashable,
        *,
        priority: int = 0,
        created: str = "",
        depends_on_pods: bool = False,
    ) -> None:
        """A pod that is new or has changed. It is tried at once, even if it was parked."""
        known = self._entries.get(uid)
        if known is None:
            self._arrivals += 1
            self._entries[uid] = _Entry(
                (-priority, created, self._arrivals), shape, depends_on_pods
            )
            self._activate(uid)
            return
        self._leave_play(known)
        # The number of the arrival stays: a pod that is updated does not lose its place.
        known.order = (-priority, created, known.order[2])
        known.shape, known.depends_on_pods = shape, depends_on_pods
        if known.state is State.TRYING:
            self._in_play[shape] += 1
            known.tried_at_wake = -1  # the pod that is being tried is out of date
        # Not BACKING_OFF and BINDING: an update must not end a backoff early, nor start a second
        # Binding.
        elif known.state in (State.ACTIVE, State.PARKED):
            self._activate(uid)

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._leave_play(entry)

    def pop(self, now_s: float) -> str | None:
        """The next pod to try. The caller then calls `placed`, `park`, `back_off` or `forget`."""
        self._fall_due(now_s)
        while self._active:
            # Nothing is ever removed from the middle of the heap. Entries of pods that were
            # forgotten, or that changed their state or order, are skipped here.
            order, uid = heapq.heappop(self._active)
            entry = self._entries.get(uid)
            if entry is not None and entry.state is State.ACTIVE and entry.order == order:
                entry.state = State.TRYING
                entry.tried_at_wake = self._wakes
                return uid
        return None

    def placed(self, uid: str) -> None:
        """A node was found and the Binding is being sent: the next pod of this shape is tried."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._leave_play(entry)
            entry.state = State.BINDING

    def park(self, uid: str, now_s: float) -> None:
        """The pod fits nowhere: wait for a wake-up, unless one came since the pod was popped.

        Also for ACTIVE pods: members of a group are tried together with the popped one.
        """
        entry = self._entries.get(uid)
        if entry is None or entry.state not in (State.TRYING, State.ACTIVE):
            return
        # That a pod fits nowhere is no error: the next error starts with the shortest backoff.
        entry.failures = 0
        was_tried = entry.state is State.TRYING
        missed_something = was_tried and entry.tried_at_wake != self._wakes
        # Not `_leave_play`: that would activate the next pod of this shape, which fits nowhere
        # either.
        self._in_play[entry.shape] -= 1
        if missed_something:
            self._activate(uid)
            return
        entry.state = State.PARKED
        if entry.depends_on_pods:
            self._dependent.add(entry.shape)
        heapq.heappush(self._parked.setdefault(entry.shape, []), (entry.order, uid))
        self._flush_s = min(self._flush_s, now_s + LONGEST_PARKED_S)

    def back_off(self, uid: str, now_s: float) -> None:
        """An error occurred: try again after an exponential backoff."""
        entry = self._entries.get(uid)
        if entry is None or entry.state not in (State.TRYING, State.BINDING):
            return
        self._leave_play(entry)
        entry.state = State.BACKING_OFF
        # The exponent is bounded, because a pod may fail thousands of times.
        due_s = now_s + min(FIRST_BACK_OFF_S * 2 ** min(entry.failures, 10), LONGEST_BACK_OFF_S)
        entry.failures += 1
        heapq.heappush(self._backing_off, (due_s, uid))

    def wake(self) -> None:
        """Something changed that may help any pending pod."""
        self._wakes += 1
        self._activate_first_of(list(self._parked))
        # Every parked shape has a pod in play now. The first of them that is parked again sets the
        # time.
        self._flush_s = float("inf")

    def wake_dependent(self) -> None:
        """A pod was placed: that helps only pods with constraints on other pods (affinity)."""
        if self._dependent:
            self._wakes += 1
            self._activate_first_of([shape for shape in self._parked if shape in self._dependent])

    def retry(self, uids: Iterable[str]) -> None:
        """These may fit now, others not: try them, of those that are alike the first one."""
        for uid in uids:
            entry = self._entries.get(uid)
            if entry is None:
                continue
            if entry.state is State.TRYING:
                entry.state = State.ACTIVE
                heapq.heappush(self._active, (entry.order, uid))
            elif entry.state is State.PARKED and not self._in_play[entry.shape]:
                self._activate_next(entry.shape)

    def is_backing_off(self, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.state is State.BACKING_OFF

    def due_s(self) -> float:
        """When the next backoff ends or parked pods are tried again, if nothing else happens."""
        first = self._backing_off[0][0] if self._backing_off else float("inf")
        return min(first, self._flush_s)

    def _fall_due(self, now_s: float) -> None:
        while self._backing_off and self._backing_off[0][0] <= now_s:
            _, uid = heapq.heappop(self._backing_off)
            entry = self._entries.get(uid)
            if entry is not None and entry.state is State.BACKING_OFF:
                self._activate(uid)
        if self._flush_s <= now_s:
            self.wake()

    def _activate_first_of(self, shapes: Iterable[Hashable]) -> None:
        for shape in shapes:
            # A pod in play will be judged by the new state anyway. If it is placed, the next one
            # follows.
            if not self._in_play[shape]:
                self._activate_next(shape)

    def _activate(self, uid: str) -> None:
        entry = self._entries[uid]
        entry.state = State.ACTIVE
        self._in_play[entry.shape] += 1
        heapq.heappush(self._active, (entry.order, uid))

    def _leave_play(self, entry: _Entry) -> None:
        """The pod is not tried any more: activate the next one of its shape."""
        if entry.state not in (State.ACTIVE, State.TRYING):
            return
        self._in_play[entry.shape] -= 1
        if not self._in_play[entry.shape]:
            del self._in_play[entry.shape]
            self._activate_next(entry.shape)

    def _activate_next(self, shape: Hashable) -> None:
        """Activate the first parked pod of a shape, if there is one."""
        parked = self._parked.get(shape)
        while parked:
            order, uid = heapq.heappop(parked)
            entry = self._entries.get(uid)
            if entry is not None and entry.state is State.PARKED and entry.order == order:
                self._activate(uid)
                break
        if not parked:
            self._parked.pop(shape, None)
            self._dependent.discard(shape)
