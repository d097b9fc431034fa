"""The queue: order, backoff, parking; no wake-up is lost."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.scheduler.queue import LONGEST_PARKED_S, Queue, State


def drained(queue: Queue, now_s: float = 0.0) -> list[str]:
    """Pop everything, and park it again at once."""
    popped = []
    while (uid := queue.pop(now_s)) is not None:
        popped.append(uid)
        queue.park(uid, now_s)
    return popped


def test_higher_priority_comes_first_then_the_older_then_the_earlier() -> None:
    queue = Queue()
    queue.add("late", "s", created="2026-01-02")
    queue.add("old", "s", created="2026-01-01")
    queue.add("old-too", "s", created="2026-01-01")
    queue.add("urgent", "s", priority=5, created="2026-01-03")
    assert drained(queue) == ["urgent", "old", "old-too", "late"]


def test_a_parked_pod_waits_for_a_wake_up() -> None:
    queue = Queue()
    queue.add("a", "s")
    assert drained(queue) == ["a"]
    assert drained(queue) == []
    queue.wake()
    assert drained(queue) == ["a"]


def test_a_wake_up_during_a_try_is_not_lost() -> None:
    queue = Queue()
    queue.add("a", "s")
    assert queue.pop(0) == "a"
    queue.wake()
    queue.park("a", 0)
    assert queue.pop(0) == "a"


def test_a_change_of_the_pod_during_its_try_is_not_lost() -> None:
    queue = Queue()
    queue.add("a", "s")
    assert queue.pop(0) == "a"
    queue.add("a", "other")
    queue.park("a", 0)
    assert queue.pop(0) == "a"


def test_a_wake_up_activates_one_pod_of_each_shape_and_the_next_when_that_is_placed() -> None:
    queue = Queue()
    for uid in ("a1", "a2", "a3"):
        queue.add(uid, "a")
    queue.add("b1", "b")
    drained(queue)
    queue.wake()
    assert queue.pop(0) == "a1"
    queue.placed("a1")
    assert queue.pop(0) == "a2"
    queue.park("a2", 0)
    assert drained(queue) == ["b1"]


def test_pods_with_affinity_are_woken_when_another_pod_is_placed() -> None:
    queue = Queue()
    queue.add("friend", "a", depends_on_pods=True)
    queue.add("loner", "b")
    drained(queue)
    queue.wake_dependent()
    assert drained(queue) == ["friend"]


def test_an_error_is_tried_again_after_one_second_then_two_and_ten_at_most() -> None:
    queue = Queue()
    queue.add("a", "s")
    now_s, waits = 100.0, []
    for _ in range(6):
        assert queue.pop(now_s) == "a"
        queue.back_off("a", now_s)
        waits.append(queue.due_s() - now_s)
        assert queue.pop(queue.due_s() - 0.001) is None
        now_s = queue.due_s()
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_pod_in_backoff_does_not_block_others_of_its_shape() -> None:
    queue = Queue()
    queue.add("a", "s")
    queue.add("b", "s")
    drained(queue)
    queue.wake()
    assert queue.pop(0) == "a"
    queue.back_off("a", 0)
    assert queue.pop(0) == "b"


def test_a_parked_pod_is_tried_again_after_five_minutes() -> None:
    queue = Queue()
    queue.add("a", "s")
    drained(queue, 7.0)
    assert queue.due_s() == 7.0 + LONGEST_PARKED_S
    assert queue.pop(queue.due_s()) == "a"


def test_a_forgotten_pod_is_never_popped() -> None:
    queue = Queue()
    queue.add("a", "s")
    assert queue.pop(0) == "a"
    queue.back_off("a", 0)
    queue.forget("a")
    assert queue.pop(100) is None
    assert "a" not in queue


def is_empty(queue: Queue) -> bool:
    by_pod = (queue._entries, queue._active, queue._backing_off)
    by_shape = (queue._in_play, queue._parked, queue._dependent)
    return not any([len(each) for each in by_pod] + [len(each) for each in by_shape])


def test_nothing_stays_of_pods_that_are_gone() -> None:
    queue = Queue()
    for number in range(300):
        uid = str(number)
        queue.add(uid, shape=uid, depends_on_pods=True)
        assert queue.pop(0) == uid
        (queue.park, queue.back_off)[number % 2](uid, 0)
    for number in range(300):
        queue.forget(str(number))
    assert is_empty(queue)


def test_updates_of_a_parked_pod_do_not_pile_up() -> None:
    queue = Queue()
    queue.add("a", "s")
    for _ in range(1000):
        drained(queue)
        queue.add("a", "s")
    assert len(queue._active._heap) < 100
    drained(queue)
    assert len(queue._parked["s"]._heap) < 100


def test_a_backoff_that_a_group_ended_does_not_shorten_the_next_one() -> None:
    queue = Queue()
    queue.add("a", "s")
    assert queue.pop(0) == "a"
    queue.back_off("a", 0)
    queue.placed("a")
    queue.back_off("a", 0.5)
    assert queue.due_s() == 2.5


@dataclass
class World:
    """Has room for some pods of each shape; the queue must fill it."""

    queue: Queue = field(default_factory=Queue)
    room: dict[str, int] = field(default_factory=lambda: {"x": 0, "y": 1})
    shape: dict[str, str] = field(default_factory=dict)
    now_s: float = 0.0
    added: int = 0
    trying: str | None = None

    def try_one(self, outcome: str) -> None:
        if self.trying is None:
            self.trying = self.queue.pop(self.now_s)
        uid, self.trying = self.trying, None
        if uid is None:
            return
        if outcome == "pause":  # others act while it is being tried
            self.trying = uid
        elif outcome == "error":
            self.queue.back_off(uid, self.now_s)
        elif self.room[self.shape[uid]]:
            self.room[self.shape[uid]] -= 1
            self.queue.placed(uid)
            if outcome == "refused":  # its room is free again
                self.room[self.shape[uid]] += 1
                self.queue.back_off(uid, self.now_s)
                self.queue.wake()
            else:
                del self.shape[uid]
                self.queue.forget(uid)
        else:
            self.queue.park(uid, self.now_s)

    def act(self, action: tuple[str, str]) -> None:
        verb, what = action
        if verb == "add":
            self.added += 1
            self.shape[f"{what}{self.added}"] = what
            self.queue.add(f"{what}{self.added}", what)
        elif verb == "reshape":
            for uid in list(self.shape)[:1]:
                self.shape[uid] = what
                self.queue.add(uid, what)
        elif verb == "delete":
            for uid in list(self.shape)[-1:]:
                del self.shape[uid]
                self.trying = None if self.trying == uid else self.trying
                self.queue.forget(uid)
        elif verb == "room":
            self.room[what] += 1
            self.queue.wake()
        else:
            self.try_one(what)


ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["add", "reshape", "delete", "room"]), st.sampled_from("xy")),
    st.tuples(st.just("try"), st.sampled_from(["ok", "ok", "pause", "error", "refused"])),
)


@settings(max_examples=400)
@given(st.lists(ACTIONS, max_size=25))
def test_after_any_sequence_of_events_a_pod_that_fits_is_tried(
    actions: list[tuple[str, str]],
) -> None:
    world = World()
    for action in actions:
        world.act(action)
    for _ in range(100):  # only time passes
        world.now_s += 1.0
        world.try_one("ok")
    assert all(not world.room[shape] for shape in world.shape.values())
    assert set(world.queue.counts()) <= {State.PARKED}
    assert sum(world.queue.counts().values()) == len(world.shape)
