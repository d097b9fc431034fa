"""The bound of the watchdogs follows the speed of the processor, within limits."""

import pytest

from tests import processor_speed
from tests.processor_speed import BOUND_S, is_too_long, slowness


def _known_work_takes(monkeypatch: pytest.MonkeyPatch, times_usual: float) -> None:
    took_s = times_usual * processor_speed._USUAL_S
    monkeypatch.setattr(processor_speed, "_known_work_s", lambda: took_s)


@pytest.mark.parametrize("times_usual", [0.1, 1, 3])
def test_a_slow_processor_has_a_longer_bound_and_a_fast_one_no_shorter(
    monkeypatch: pytest.MonkeyPatch, times_usual: float
) -> None:
    _known_work_takes(monkeypatch, times_usual)
    bound_s = BOUND_S * max(times_usual, 1)
    assert not is_too_long(0.99 * bound_s)
    assert is_too_long(1.01 * bound_s)


def test_what_takes_four_times_the_bound_is_too_long_on_any_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _known_work_takes(monkeypatch, 1000)
    assert is_too_long(4.01 * BOUND_S)


def test_the_speed_of_this_processor_is_measured() -> None:
    assert processor_speed._known_work_s() > 0
    assert 1 <= slowness() <= 4
