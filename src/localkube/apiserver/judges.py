"""Judges: asks questions that may take long without keeping others waiting."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from localkube.apiserver.cel.expressions import Exhausted
from localkube.apiserver.long_work import LongWork
from localkube.apiserver.waiting import within_a_task

# What is judged at once, in some ten milliseconds. The rest is left to a thread, so that nobody
# waits for somebody else's expressions; and to one thread, so that many of them do not add up.
AT_ONCE = 10_000

_T = TypeVar("_T")


class Judges:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "judges")
        self.long_work = LongWork()

    async def answer(self, question: Callable[[int], _T], budget: int) -> _T:
        """`question` gets its budget, and may be asked a second time with a larger one. Raises
        what it raises, Exhausted included."""
        try:
            return question(min(AT_ONCE, budget))
        except Exhausted:
            if budget <= AT_ONCE:
                raise
        await within_a_task()
        loop = self.long_work.attach()  # a question may have to ask on the loop
        return await loop.run_in_executor(self._thread, question, budget)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self.long_work.close()
