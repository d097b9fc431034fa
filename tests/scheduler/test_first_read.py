"""The garbage collector pauses while the cluster is read for the first time."""

import asyncio
import gc

import pytest

from gpupool.scheduler import follow
from gpupool.scheduler.follow import _first_read, empty_state


async def test_the_collector_pauses_during_the_first_read_and_goes_on_afterwards() -> None:
    with _first_read(empty_state()):
        assert not gc.isenabled()
    assert gc.isenabled()


async def test_a_read_that_does_not_end_does_not_stop_the_collector_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each list that is cut off leaves its part behind: three megabytes a second, on some days."""
    monkeypatch.setattr(follow, "_LONGEST_PAUSE_S", 0.0, raising=False)
    with _first_read(empty_state()):
        async with asyncio.timeout(5):
            while not gc.isenabled():  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0)
