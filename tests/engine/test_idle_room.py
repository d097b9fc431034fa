"""Room is kept idle for some hours at most, then free for all for as long, then kept for longer."""

import pytest

from gpupool.core.pods import PodRequest
from gpupool.engine import idle_room
from gpupool.engine.idle_room import IDLE_S, IdleRoom
from gpupool.engine.reservation import Waiting
from gpupool.engine.reservations import Reservations
from tests.engine import test_reservations
from tests.engine.building import POLICY, cluster_of, gpu_node, place, shared, whole
from tests.engine.reserving import full_cluster, soon, waiting

HOUR_S = 3600.0


def test_each_time_it_may_be_idle_for_twice_as_long() -> None:
    room, now_s, pauses_h = IdleRoom(), 0.0, []
    while now_s < 100 * HOUR_S:
        now_s += HOUR_S
        if room.pauses("job", now_s):
            continue
        if room.is_over("job", True, now_s):
            room.dropped("job")
            pauses_h.append(now_s / HOUR_S)
    # Idle from hour 1 to 5 and free until 9, idle until 17 and free until 25, ...
    assert pauses_h == [5, 17, 41, 89]


def lapses_at_h(used_h: float, idle_h: float) -> list[float]:
    """Room that is used and idle by turns."""
    room, now_h, found = IdleRoom(), 0.0, []
    while now_h < 100:
        for is_idle, hours in ((False, used_h), (True, idle_h)):
            if room.is_over("job", is_idle, now_h * HOUR_S):
                found.append(now_h)
            now_h += hours
            if room.is_over("job", is_idle, now_h * HOUR_S):
                found.append(now_h)
    return found


def test_room_that_is_used_for_half_of_the_time_is_not_idle() -> None:
    assert lapses_at_h(1, 1) == []
    assert lapses_at_h(3, 2) == []


def test_a_minute_of_use_does_not_make_up_for_hours() -> None:
    """Such as that of a pod that comes once in an hour."""
    first, *_ = lapses_at_h(1 / 60, 1)
    assert 4 < first < 6


def test_no_more_than_some_thousand_pauses_are_remembered() -> None:
    room = IdleRoom()
    for number in range(10_000):
        room.is_over(number, True, 0.0)
        assert room.is_over(number, True, IDLE_S)
        room.dropped(number)
    assert len(room._pauses) == idle_room._MOST_KNOWN
    assert room.pauses(9_999, IDLE_S)
    assert not room._idle


def test_nothing_is_idle_before_something_was_freed() -> None:
    cluster = full_cluster(4)
    kept = Reservations(cluster)
    kept.consider([waiting("job", 4)], POLICY, soon, 0)
    for now_s in (0.0, IDLE_S, 10 * IDLE_S):
        assert kept.lapsed(now_s) == []
    cluster.release("run-0")
    kept.gone("run-0")
    assert kept.lapsed(10 * IDLE_S) == []  # idle from now on
    (over,) = kept.lapsed(11 * IDLE_S)
    assert over.waiting.key == "job"


@pytest.mark.parametrize("job", [whole("job", 2), shared("job", 15, cards=2)])
def test_cards_that_are_full_of_shares_are_not_idle(job: PodRequest) -> None:
    cluster = cluster_of(gpu_node("n", 2))
    for at in range(2):
        place(cluster, shared(f"run-{at}", 15))
    kept = Reservations(cluster)
    kept.consider([Waiting("job", (job,), 0)], POLICY, soon, 0)
    assert len(kept) == 1
    for now_s in (0.0, IDLE_S, 10 * IDLE_S):
        assert kept.lapsed(now_s) == []
    cluster.release("run-0")
    kept.gone("run-0")
    assert kept.lapsed(10 * IDLE_S) == []  # idle from now on
    assert len(kept.lapsed(11 * IDLE_S)) == 1


def test_a_share_that_is_free_beside_another_one_is_idle() -> None:
    cluster = cluster_of(gpu_node("n", 1))
    place(cluster, shared("run", 8))
    kept = Reservations(cluster)
    kept.consider([Waiting("job", (shared("job", 10),), 0)], POLICY, soon, 0)
    assert kept.lapsed(0) == []
    assert len(kept.lapsed(IDLE_S)) == 1


def test_who_pauses_gets_no_room_and_others_do() -> None:
    cluster = full_cluster(4)
    kept = Reservations(cluster)
    job, other = waiting("job", 4), waiting("other", 4, since_s=1)
    kept.consider([job], POLICY, soon, 0)
    cluster.release("run-0")
    kept.gone("run-0")
    kept.lapsed(0)
    assert [each.waiting.key for each in kept.lapsed(IDLE_S)] == ["job"]
    kept.drop("job")
    (made,) = kept.consider([job, other], POLICY, soon, IDLE_S)
    assert made.waiting.key == "other"
    kept.drop("other")
    (made,) = kept.consider([job, other], POLICY, soon, 2 * IDLE_S)
    assert made.waiting.key == "job"


def test_every_job_starts_also_if_room_may_be_idle_for_two_steps_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle_room, "IDLE_S", 2.0)
    test_reservations.test_every_job_that_fits_on_an_empty_cluster_starts_under_any_stream_of_small_pods()
