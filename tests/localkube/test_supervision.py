"""Supervision: whatever a program does, it is started again, told, and stopped when asked."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.health import Health
from localkube.supervision import Pauses, Supervisor

QUICK = Pauses(first_s=0.0, longest_s=0.0, works_after_s=0.0, forgotten_after_s=3600.0)
SLOW = Pauses(first_s=3600.0, longest_s=3600.0)


class Told:
    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []
        self.objects: list[tuple[str, str]] = []

    def program_failed(self, program: str, words: str) -> None:
        self.failures.append((program, words))

    def object_not_handled(self, program: str, obj: Obj, words: str) -> None:
        self.objects.append((program, words))


@contextlib.asynccontextmanager
async def kept(program: Callable[[], Any], pauses: Pauses, told: Told, health: Health) -> Any:
    task = asyncio.create_task(Supervisor(health, told, pauses).keep("p", program))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def _ends() -> None:
    return None


async def _fails() -> None:
    raise ValueError("no")


async def _cancels_itself() -> None:
    raise asyncio.CancelledError


async def _waits_for_what_is_cancelled() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def _exits() -> None:
    raise SystemExit(3)


async def _fails_in_a_group() -> None:
    async with asyncio.TaskGroup() as tasks, asyncio.TaskGroup() as inner:
        inner.create_task(_fails())
        tasks.create_task(asyncio.Event().wait())


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("an error that cannot say what it is")


async def _mute() -> None:
    raise _Mute


def _not_even_made() -> Any:
    raise TypeError("wrong arguments")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (_fails, "ValueError: no"),
        (_fails_in_a_group, "ValueError: no"),
        (_ends, "EndedByItself: it returned"),
        (_cancels_itself, "EndedByItself: it was cancelled by one of its own parts"),
        (_waits_for_what_is_cancelled, "EndedByItself: it was cancelled by one of its own parts"),
        (_exits, "EndedByItself: it asked to exit with 3"),
        (_mute, "_Mute"),
        (_not_even_made, "TypeError: wrong arguments"),
        (lambda: None, "TypeError: "),
    ],
)
async def test_a_program_that_ends_in_any_way_is_told_and_started_again(
    program: Callable[[], Any], words: str
) -> None:
    told, health = Told(), Health()
    async with kept(program, QUICK, told, health) as task:
        await until(lambda: len(told.failures) >= 3)
        assert not task.done()
        assert [check.name for check in health.failing()] == ["p"]
    assert all(name == "p" and said.startswith(words) for name, said in told.failures)
    assert list(health) == []  # what is stopped does not fail


async def test_a_program_that_comes_back_counts_as_working() -> None:
    starts = 0

    async def program() -> None:
        nonlocal starts
        starts += 1
        if starts < 3:
            raise ValueError(f"no {starts}")
        await asyncio.Event().wait()

    told, health = Told(), Health()
    async with kept(program, QUICK, told, health):
        await until(lambda: starts == 3 and not health.failing())
    assert [words for _, words in told.failures] == ["ValueError: no 1", "ValueError: no 2"]


async def test_ten_thousand_failures_leave_one_traceback_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told, health = Told(), Health()
    with caplog.at_level(logging.ERROR):
        async with kept(_fails, QUICK, told, health):
            await until(lambda: len(told.failures) >= 10_000)
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert len(list(health)) == 0


def test_pauses_double_up_to_a_minute() -> None:
    pauses = [Pauses().after(failures) for failures in (1, 2, 3, 6, 7, 8, 10_000)]
    assert pauses == [1.0, 2.0, 4.0, 32.0, 60.0, 60.0, 60.0]


async def test_a_program_that_waits_for_its_restart_can_be_stopped() -> None:
    told, health = Told(), Health()
    async with kept(_fails, SLOW, told, health) as task:
        await until(lambda: bool(told.failures))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert list(health) == []


async def test_a_program_is_stopped_with_all_of_its_cleaning_up() -> None:
    started, may_end, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def program() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            cleaned.set()

    told, health = Told(), Health()
    async with kept(program, SLOW, told, health) as task:
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert cleaned.is_set()
    assert told.failures == []


async def test_a_program_that_fails_while_it_stops_is_not_started_again() -> None:
    starts = 0

    async def program() -> None:
        nonlocal starts
        starts += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("not so fast") from None

    told, health = Told(), Health()
    async with kept(program, QUICK, told, health) as task:
        await until(lambda: starts == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (starts, told.failures) == (1, [])


def test_an_object_that_a_program_cannot_handle_is_noted_until_it_can() -> None:
    told, health = Told(), Health()
    supervisor = Supervisor(health, told)
    health.begins("p")
    odd: Obj = {"kind": "Pod", "metadata": {"name": "odd", "namespace": "default"}}
    broke = supervisor.objects_of("p")
    broke(odd, OverflowError("too large"))
    assert [check.objects for check in health] == [("Pod default/odd: OverflowError: too large",)]
    assert health.failing() == []
    assert told.objects == [("p", "OverflowError: too large")]
    broke(odd, None)
    assert [check.objects for check in health] == [()]


def test_the_objects_that_are_noted_are_bounded() -> None:
    health = Health()
    for number in range(10_000):
        health.cannot_handle("p", f"Pod {number}", "no")
    [check] = health
    assert len(check.objects) == 100
