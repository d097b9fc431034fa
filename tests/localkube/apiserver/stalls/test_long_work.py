"""Long work is done aside, in turns of its users, and asks the loop what belongs to the loop."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from localkube.apiserver.long_work import MOST_WAITING, LongWork
from localkube.apiserver.status import ApiError

_PATIENCE_S = 30.0


@pytest.fixture
async def work() -> AsyncIterator[LongWork]:
    made = LongWork()
    yield made
    made.close()


async def test_a_step_runs_in_another_thread_and_its_result_comes_back(work: LongWork) -> None:
    assert await work.done("a", threading.get_ident) != threading.get_ident()


async def test_what_a_step_raises_is_raised(work: LongWork) -> None:
    def fails() -> None:
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        await work.done("a", fails)
    assert await work.done("a", lambda: 1) == 1


async def test_a_step_asks_the_loop_in_the_thread_of_the_loop(work: LongWork) -> None:
    here = threading.get_ident()
    assert await work.done("a", lambda: work.on_loop(threading.get_ident)) == here
    assert work.on_loop(threading.get_ident) == here


async def test_users_take_turns(work: LongWork) -> None:
    hold, order = threading.Event(), list[str]()
    first = asyncio.create_task(work.done("many", lambda: hold.wait(_PATIENCE_S)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    def step(name: str) -> asyncio.Task[None]:
        return asyncio.create_task(work.done(name, lambda: order.append(name)))

    steps = [step("many"), step("many"), step("many"), step("one")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    hold.set()
    await asyncio.gather(first, *steps)
    assert order == ["many", "one", "many", "many"]


async def test_one_user_cannot_queue_without_end(work: LongWork) -> None:
    hold = threading.Event()
    first = asyncio.create_task(work.done("a", lambda: hold.wait(_PATIENCE_S)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(work.done("a", int)) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refused:
        await work.done("a", int)
    assert refused.value.code == 429
    hold.set()
    assert await work.done("b", lambda: 2) == 2
    await asyncio.gather(first, *waiting)


async def test_the_work_of_a_client_that_has_left_is_not_begun(work: LongWork) -> None:
    hold, begun = threading.Event(), list[int]()
    first = asyncio.create_task(work.done("a", lambda: hold.wait(_PATIENCE_S)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left = asyncio.create_task(work.done("a", lambda: begun.append(1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left.cancel()
    hold.set()
    await first
    assert await work.done("a", lambda: 3) == 3
    assert not begun
