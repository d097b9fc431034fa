from math import inf

from hypothesis import given
from hypothesis import strategies as st

from gpupool.engine.run_times import RunTimes


def test_a_known_kind_ends_when_half_of_its_kind_did() -> None:
    runs = RunTimes()
    for seconds in (10, 20, 30, 40, 50):
        runs.ended("train", seconds)
    assert runs.left_s("train", 0) == 30
    assert runs.left_s("train", 15) == 25  # of those that ran longer than 15 s, half end by 40 s


def test_an_unknown_kind_is_taken_to_run_for_long() -> None:
    runs = RunTimes()
    for seconds in (10, 20, 30, 40, 5000):
        runs.ended("train", seconds)
    assert runs.left_s("serve", 0) == 5000
    assert RunTimes().left_s("serve", 0) == 86_400


def test_what_outlives_its_kind_goes_on_for_as_long_again() -> None:
    runs = RunTimes()
    for _ in range(9):
        runs.ended("train", 60)
    assert runs.left_s("train", 600) == 600


def test_a_kind_runs_at_most_as_long_as_its_longest_run_if_there_were_many() -> None:
    runs = RunTimes()
    for seconds in range(1, 8):
        runs.ended("train", seconds)
    assert runs.at_most_s("train") == inf
    runs.ended("train", 8)
    assert runs.at_most_s("train") == 8


def test_of_many_pods_the_last_one_ends_later() -> None:
    runs = RunTimes()
    for seconds in range(1, 101):
        runs.ended("train", seconds)
    assert runs.left_s("train", 0, of=1) < runs.left_s("train", 0, of=4) < 100


def test_old_runs_are_forgotten() -> None:
    runs = RunTimes()
    for _ in range(64):
        runs.ended("train", 1000)
    for _ in range(64):
        runs.ended("train", 10)
    assert runs.left_s("train", 0) == 10


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e9)), max_size=300),
    st.floats(0, 1e9),
)
def test_nothing_ends_in_the_past(ended: list[tuple[int, float]], age_s: float) -> None:
    runs = RunTimes()
    for kind, seconds in ended:
        runs.ended(kind, seconds)
    for kind in range(5):
        assert runs.left_s(kind, age_s) >= 0
        assert runs.at_most_s(kind) >= 0
