"""WorkQueue: every key is looked at after its last change, never twice at a time."""

import asyncio

from localkube.controllers.work_queue import WorkQueue

A, B = ("default", "a"), ("default", "b")


async def test_a_key_waits_once_however_often_it_is_added() -> None:
    queue = WorkQueue()
    for key in (A, A, B, A):
        queue.add(key)
    assert await queue.take() == A
    assert await queue.take() == B
    assert not queue._waiting


async def test_what_changes_while_it_is_worked_on_is_looked_at_again() -> None:
    queue = WorkQueue()
    queue.add(A)
    assert await queue.take() == A
    queue.add(A)
    assert not queue._waiting, "never twice at a time"
    queue.done(A)
    assert await asyncio.wait_for(queue.take(), 1) == A


async def test_a_failure_comes_back_by_itself_and_ever_later() -> None:
    queue = WorkQueue()
    queue.add(A)
    delays = []
    for _ in range(3):
        await asyncio.wait_for(queue.take(), 5)
        delays.append(queue.failed(A))
    assert delays == sorted(set(delays))
    queue.close()


async def test_success_forgets_earlier_failures() -> None:
    queue = WorkQueue()
    queue.add(A)
    await queue.take()
    first = queue.failed(A)
    await asyncio.wait_for(queue.take(), 5)
    queue.done(A)
    queue.add(A)
    await queue.take()
    assert queue.failed(A) == first
    queue.close()


async def test_the_earliest_of_several_times_wins() -> None:
    queue = WorkQueue()
    queue.add_after(A, 60)
    queue.add_after(A, 0)
    assert await asyncio.wait_for(queue.take(), 1) == A


async def test_a_key_that_took_long_rests_before_it_is_looked_at_again() -> None:
    queue = WorkQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    queue.done(A, took_s=0.05)
    assert not queue._waiting
    assert await asyncio.wait_for(queue.take(), 1) == A
