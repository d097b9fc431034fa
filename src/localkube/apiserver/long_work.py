"""LongWork: what takes long is done in a thread, so that nobody waits for somebody else's request.

There is one thread, so that many requests do not add up, and users take turns in it: who sends many
long requests waits for himself. Only what belongs to one request alone may be done there. What
others change (the store, the authorizer) is asked for on the event loop, by `on_loop`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from localkube.apiserver import status
from localkube.apiserver.allocation import apart, use_one_heap
from localkube.apiserver.memory import give_back
from localkube.apiserver.waiting import within_a_task

# Of one user. Each holds its body in memory meanwhile.
MOST_WAITING = 32
_IDLE_S = 0.25  # then memory is given back to the system
_TIDIED_AFTER = 64  # steps, if there is never a pause
_LOOK_AGAIN_S = 0.5  # whether the server has been closed

_T = TypeVar("_T")


class Closed(Exception):
    """The server ends; nobody waits for the answer."""


class _Job:
    __slots__ = ("answer", "step")

    def __init__(self, step: Callable[[], Any], answer: "asyncio.Future[Any]") -> None:
        self.step = step
        self.answer = answer


class LongWork:
    def __init__(self) -> None:
        use_one_heap()
        self._threads = ThreadPoolExecutor(1, "long-work")
        self._waiting: dict[str, deque[_Job]] = {}  # by user, in the order of their turns
        self._is_busy = False
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._tidying: asyncio.TimerHandle | None = None
        self._untidied = 0

    def attach(self) -> asyncio.AbstractEventLoop:
        """To the running loop, on which `on_loop` answers."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        return self._loop

    async def done(self, user: str, step: Callable[[], _T]) -> _T:
        """What `step` returns or raises. Raises ApiError 429 if too much of the user waits."""
        await within_a_task()
        loop = self.attach()
        queue = self._waiting.setdefault(user, deque())
        if len(queue) >= MOST_WAITING:
            raise status.too_many_requests(
                f"{MOST_WAITING} large requests of this user wait already, please try again later"
            )
        answer: asyncio.Future[_T] = loop.create_future()
        queue.append(_Job(step, answer))
        self._begin_next(loop)
        try:
            return await answer
        finally:
            # An exception knows this frame, and the frame the future that holds the exception: a
            # circle, in which the whole request would stay until the garbage collector comes.
            del answer, step

    def on_loop(self, question: Callable[[], _T]) -> _T:
        """For code that may run in either thread. Raises what it raises, or Closed."""
        loop = self._loop
        if loop is None or threading.get_ident() == self._loop_thread:
            return question()
        answer: ThreadFuture[_T] = ThreadFuture()
        try:
            loop.call_soon_threadsafe(_answer, question, answer)
        except RuntimeError:  # the loop has been closed
            raise Closed from None
        while not self._is_closed:
            try:
                return answer.result(_LOOK_AGAIN_S)
            except TimeoutError:
                if answer.done():
                    raise
        raise Closed

    def aside(self, step: Callable[[], None]) -> None:
        """For the loop: what nobody waits for, and belongs to nobody else."""
        if self._loop is None or self._is_closed:
            step()
            return
        self._loop.run_in_executor(self._threads, step)
        self._tidy_later(self._loop)

    def tidy(self) -> None:
        """Gives memory back to the system once there is a pause. For the loop."""
        if self._loop is not None:
            self._tidy_later(self._loop)

    def close(self) -> None:
        self._is_closed = True
        if self._tidying is not None:
            self._tidying.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin_next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and not self._is_busy and not self._is_closed:
            user = next(iter(self._waiting))
            queue = self._waiting.pop(user)
            job = queue.popleft()
            if queue:
                self._waiting[user] = queue  # behind all others
            if job.answer.done():  # its client has left
                continue
            self._is_busy = True
            running = loop.run_in_executor(self._threads, _apart, job.step)
            running.add_done_callback(partial(self._ended, loop, job))
            return

    def _ended(
        self, loop: asyncio.AbstractEventLoop, job: _Job, ended: "asyncio.Future[Any]"
    ) -> None:
        self._is_busy = False
        if not ended.cancelled():
            error = ended.exception()
            if job.answer.done():
                pass
            elif error is not None:
                job.answer.set_exception(error)
            else:
                job.answer.set_result(ended.result())
        self._begin_next(loop)
        self._tidy_later(loop)

    def _tidy_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        if not self._is_closed:
            self._untidied += 1
            if self._untidied >= _TIDIED_AFTER:
                self._tidy(loop)
            else:
                self._tidying = loop.call_later(_IDLE_S, self._tidy, loop)

    def _tidy(self, loop: asyncio.AbstractEventLoop) -> None:
        self._tidying, self._untidied = None, 0
        if not self._is_closed:
            loop.run_in_executor(self._threads, give_back)


def _answer(question: Callable[[], _T], answer: "ThreadFuture[_T]") -> None:
    try:
        answer.set_result(question())
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever asked
        answer.set_exception(error)


def _apart(step: Callable[[], _T]) -> _T:
    with apart():
        return step()
