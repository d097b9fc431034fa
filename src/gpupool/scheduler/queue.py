"""Queue: pending pods, in the order in which they are tried.

    add -> ACTIVE -> pop -> TRYING -> placed -> BINDING -> forget
             ^ ^              |  |                 |
             | +-- PARKED <---+  |                 |     fits nowhere: until `wake`
             +-- BACKING_OFF <---+-----------------+     an error: until the backoff is over

A state machine without I/O. The time is an argument, in seconds of a monotonic clock.

Pods of one shape are alike to every node: where one does not fit, none does. So a wake-up activates
only the first pod of each shape, and the next one when the first was placed. A change in the
cluster costs as much as there are shapes, not as there are pending pods. Whether pods are alike may
change with the cluster: then they get other shapes (`reshape`).

No wake-up is lost: if one comes while a pod is being tried, the pod was judged by an older state.
`park` notices that by the number of the wake-up, and activates the pod again.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from gpupool.scheduler.lines import Line

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


_IN_PLAY = (State.ACTIVE, State.TRYING)


@dataclass(slots=True)
class _Entry:
    order: Order
    shape: Hashable
    depends_on_pods: bool
    state: State
    failures: int = 0
    due_s: float = 0.0  # BACKING_OFF: when it ends
    tried_at_wake: int = 0  # number of the last wake-up when it was popped
    attempts: int = 0


class Queue:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._active: Line[Order] = Line()
        self._backing_off: Line[float] = Line()  # by the time at which the backoff ends
        self._parked: dict[Hashable, Line[Order]] = {}  # by shape
        self._in_play: Counter[Hashable] = Counter()  # by shape: pods that are ACTIVE or TRYING
        self._dependent: set[Hashable] = set()  # parked shapes whose constraints look at other pods
        self._arrivals = 0
        self._wakes = 0
        self._flush_s = float("inf")
        # How often a pod came into a state, and why, in kube-scheduler's words. For metrics.
        self.incoming: Counter[tuple[str, State]] = Counter()

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
            order = (-priority, created, self._arrivals)
            self._entries[uid] = _Entry(order, shape, depends_on_pods, State.TRYING)
            self._enter(uid, State.ACTIVE)
            self.incoming["PodAdd", State.ACTIVE] += 1
            return
        state = known.state
        self._leave(uid, known)
        # The number of the arrival stays: a pod that is updated does not lose its place.
        known.order = (-priority, created, known.order[2])
        old_shape, known.shape, known.depends_on_pods = known.shape, shape, depends_on_pods
        if state is State.TRYING:
            known.tried_at_wake = -1  # the pod that is being tried is out of date
        # An update must not end a backoff early, nor start a second Binding.
        self._enter(uid, State.ACTIVE if state is State.PARKED else state)
        if state in _IN_PLAY:
            self._next_of(old_shape)

    def reshape(self, uid: str, shape: Hashable) -> bool:
        """Another shape for the same pod. Returns whether it is another one.

        The caller calls `wake` after all of them: who was tried for whom is not known any more.
        """
        entry = self._entries.get(uid)
        if entry is None or entry.shape == shape:
            return False
        state = entry.state
        self._leave(uid, entry)
        entry.shape = shape
        self._enter(uid, state)
        return True

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._leave(uid, entry)
            del self._entries[uid]
            if entry.state in _IN_PLAY:
                self._next_of(entry.shape)

    def pop(self, now_s: float) -> str | None:
        """The next pod to try. The caller then calls `placed`, `park`, `back_off` or `forget`."""
        self._fall_due(now_s)
        first = self._active.first()
        if first is None:
            return None
        _, uid = first
        self._move(uid, State.TRYING)
        self._entries[uid].tried_at_wake = self._wakes
        self._entries[uid].attempts += 1
        return uid

    def attempts(self, uid: str) -> int:
        entry = self._entries.get(uid)
        # A member of a group is tried together with the one that was popped.
        return max(1, entry.attempts) if entry is not None else 1

    def placed(self, uid: str) -> None:
        """A node was found, and a Binding or evictions are being sent: the next pod of this shape
        is tried.
        """
        if uid in self._entries:
            self._out_of_play(uid, State.BINDING)

    def park(self, uid: str, now_s: float) -> None:
        """The pod fits nowhere: wait for a wake-up, unless one came since the pod was popped.

        Also for ACTIVE pods: members of a group are tried together with the popped one.
        """
        entry = self._entries.get(uid)
        if entry is None or entry.state not in _IN_PLAY:
            return
        # That a pod fits nowhere is no error: the next error starts with the shortest backoff.
        entry.failures = 0
        if entry.state is State.TRYING and entry.tried_at_wake != self._wakes:
            self._move(uid, State.ACTIVE)
            return
        # Not `_next_of`: that would activate the next pod of this shape, which fits nowhere either.
        self._move(uid, State.PARKED)
        self._flush_s = min(self._flush_s, now_s + LONGEST_PARKED_S)

    def back_off(self, uid: str, now_s: float) -> None:
        """An error occurred: try again after an exponential backoff."""
        entry = self._entries.get(uid)
        if entry is None or entry.state not in (State.TRYING, State.BINDING):
            return
        # The exponent is bounded, because a pod may fail thousands of times.
        wait_s = min(FIRST_BACK_OFF_S * 2 ** min(entry.failures, 10), LONGEST_BACK_OFF_S)
        entry.failures += 1
        entry.due_s = now_s + wait_s
        self._out_of_play(uid, State.BACKING_OFF)

    def again(self, uid: str) -> None:
        """The writes for a pod are done, and it still has no node: try it at once."""
        entry = self._entries.get(uid)
        if entry is not None and entry.state is State.BINDING:
            self._move(uid, State.ACTIVE)

    def wake(self) -> None:
        """Something changed that may help any pending pod."""
        self._wakes += 1
        for shape in list(self._parked):
            self._next_of(shape)
        # Every parked shape has a pod in play now. The first of them that is parked again sets the
        # time.
        self._flush_s = float("inf")

    def wake_dependent(self) -> None:
        """A pod was placed: that helps only pods with constraints on other pods (affinity)."""
        self._wakes += 1
        for shape in list(self._dependent):
            self._next_of(shape)

    def retry(self, uids: Iterable[str]) -> None:
        """These may fit now, others not: try them, of those that are alike the first one."""
        for uid in uids:
            entry = self._entries.get(uid)
            if entry is None:
                continue
            if entry.state is State.TRYING:
                self._move(uid, State.ACTIVE)
            elif entry.state is State.PARKED:
                self._next_of(entry.shape)

    def is_backing_off(self, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.state is State.BACKING_OFF

    def is_parked(self, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.state is State.PARKED

    def due_s(self) -> float:
        """When the next backoff ends or parked pods are tried again, if nothing else happens."""
        first = self._backing_off.first()
        return min(first[0] if first is not None else float("inf"), self._flush_s)

    def _fall_due(self, now_s: float) -> None:
        while (first := self._backing_off.first()) is not None and first[0] <= now_s:
            self._move(first[1], State.ACTIVE)
        if self._flush_s <= now_s:
            self.wake()

    def _next_of(self, shape: Hashable) -> None:
        """Activate the first parked pod of a shape, unless a pod of the shape is in play.

        A pod in play will be judged by the new state anyway. If it is placed, the next one follows.
        """
        parked = self._parked.get(shape)
        first = parked.first() if parked is not None and not self._in_play[shape] else None
        if first is not None:
            self._move(first[1], State.ACTIVE)

    def _out_of_play(self, uid: str, state: State) -> None:
        """The pod is not tried any more: activate the next one of its shape."""
        entry = self._entries[uid]
        was_in_play = entry.state in _IN_PLAY
        self._move(uid, state)
        if was_in_play:
            self._next_of(entry.shape)

    # -- states ----------------------------------------------------------------------------

    def _move(self, uid: str, state: State) -> None:
        if state in (State.PARKED, State.BACKING_OFF):
            self.incoming["ScheduleAttemptFailure", state] += 1
        elif state is State.ACTIVE:
            is_over = self._entries[uid].state is State.BACKING_OFF
            self.incoming["BackoffComplete" if is_over else "ClusterChange", state] += 1
        self._leave(uid, self._entries[uid])
        self._enter(uid, state)

    def _leave(self, uid: str, entry: _Entry) -> None:
        """Nothing of its old state stays behind, or shapes of past pods would pile up."""
        shape = entry.shape
        if entry.state in _IN_PLAY:
            self._active.discard(uid)
            self._in_play[shape] -= 1
            if not self._in_play[shape]:
                del self._in_play[shape]
        elif entry.state is State.BACKING_OFF:
            self._backing_off.discard(uid)
        elif entry.state is State.PARKED:
            self._parked[shape].discard(uid)
            if not self._parked[shape]:
                del self._parked[shape]
                self._dependent.discard(shape)

    def _enter(self, uid: str, state: State) -> None:
        entry = self._entries[uid]
        entry.state = state
        if state in _IN_PLAY:
            self._in_play[entry.shape] += 1
        if state is State.ACTIVE:
            self._active.add(uid, entry.order)
        elif state is State.BACKING_OFF:
            self._backing_off.add(uid, entry.due_s)
        elif state is State.PARKED:
            self._parked.setdefault(entry.shape, Line()).add(uid, entry.order)
            if entry.depends_on_pods:
                self._dependent.add(entry.shape)
