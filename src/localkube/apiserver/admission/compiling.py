"""Compiling: expressions of policies and webhooks are compiled without keeping others waiting.

Two thousand characters take about four milliseconds. More are left to the thread of long work, one
compilation at a time: whoever needs the same one waits for it, and does not ask for it again.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from localkube.apiserver.long_work import LongWork
from localkube.apiserver.waiting import within_a_task

_AT_ONCE = 2000  # characters

_T = TypeVar("_T")


class Compiling:
    def __init__(self, long_work: LongWork, owner: str) -> None:
        """`owner`: who takes turns in the thread with the users."""
        self._long_work = long_work
        self._owner = owner
        self._one_at_a_time = asyncio.Lock()

    async def done(
        self, known: Callable[[], _T | None], make: Callable[[], _T], length: Callable[[], int]
    ) -> _T:
        """What is known by the time it is our turn; otherwise, what `make` makes."""
        if length() <= _AT_ONCE:
            return make()
        await within_a_task()
        async with self._one_at_a_time:
            found = known()
            return await self._long_work.done(self._owner, make) if found is None else found
