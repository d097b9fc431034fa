"""WorkQueue: every key is taken after its last change, and by one worker at a time."""

import asyncio

from kubeclient.mirror import Key
from localkube.work_queue import WorkQueue

A, B = ("default", "a"), ("default", "b")


async def test_a_key_waits_once_however_often_it_is_added() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    for key in (A, A, B, A):
        queue.add(key)
    assert len(queue) == 2
    assert await queue.take() == A
    assert await queue.take() == B
    assert not len(queue)


async def test_a_key_that_is_added_while_a_worker_holds_it_is_taken_again() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    queue.add(A)
    assert await queue.take() == A
    queue.add(A)
    assert not len(queue), "never twice at a time"
    queue.done(A)
    assert await asyncio.wait_for(queue.take(), 1) == A


async def test_a_failed_key_is_added_again_with_growing_delays() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    queue.add(A)
    delays = []
    for _ in range(3):
        await asyncio.wait_for(queue.take(), 5)
        delays.append(queue.failed(A))
    assert delays == sorted(set(delays))
    queue.close()


async def test_success_forgets_earlier_failures() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    queue.add(A)
    await queue.take()
    first = queue.failed(A)
    await asyncio.wait_for(queue.take(), 5)
    queue.done(A)
    queue.add(A)
    await queue.take()
    assert queue.failed(A) == first
    queue.close()


async def test_the_earliest_of_several_delays_wins() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    queue.add_after(A, 60)
    queue.add_after(A, 0)
    assert await asyncio.wait_for(queue.take(), 1) == A


async def test_a_key_whose_work_took_long_rests_before_it_is_taken_again() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    queue.done(A, took_s=0.05)
    assert not len(queue)
    assert await asyncio.wait_for(queue.take(), 1) == A


async def test_each_key_wakes_one_waiting_worker() -> None:
    queue: WorkQueue[str] = WorkQueue()
    workers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add("pod-uid")
    done, waiting = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
    assert [worker.result() for worker in done] == ["pod-uid"]
    for worker in waiting:
        worker.cancel()


async def test_a_cancelled_worker_does_not_take_a_key_with_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.create_task(queue.take())
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add("pod-uid")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "pod-uid"
