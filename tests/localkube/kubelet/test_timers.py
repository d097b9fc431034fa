from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.timers import Timers


class Clock:
    now = 0.0


def made() -> tuple[Clock, Timers, list[str]]:
    clock, rung = Clock(), list[str]()
    return clock, Timers(lambda: clock.now, rung.append), rung


def test_keys_that_are_due_ring_in_order() -> None:
    clock, timers, rung = made()
    timers.add(3, "c")
    timers.add(1, "a")
    timers.add(2, "b")
    clock.now = 2
    assert timers.ring_due() == 1
    assert rung == ["a", "b"]


def test_an_earlier_time_wins_and_a_later_one_is_void() -> None:
    clock, timers, rung = made()
    timers.add(5, "a")
    timers.add(2, "a")
    timers.add(9, "a")
    clock.now = 10
    timers.ring_due()
    assert rung == ["a"]
    timers.add(11, "a")
    clock.now = 11
    timers.ring_due()
    assert rung == ["a", "a"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=12))
def test_each_key_rings_once_at_its_earliest_time(entries: list[tuple[str, int]]) -> None:
    clock, timers, rung = made()
    for key, when in entries:
        timers.add(when, key)
    heard: dict[str, float] = {}
    for now in range(7):
        clock.now = now
        timers.ring_due()
        heard |= {key: now for key in rung if key not in heard}
    assert len(rung) == len(heard)
    assert heard == {key: min(w for k, w in entries if k == key) for key, _ in entries}
