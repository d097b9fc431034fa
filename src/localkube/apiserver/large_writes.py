"""LargeWrites: how many large writes are worked on at a time.

One large write has its object in memory, parsed, until it is answered: some fifty megabytes. Forty
of one user, each waiting for the others' steps, made the server ten times as large. So a user has
two at a time, and the rest wait as bytes. There is a limit for all users together, too: what is
over it is told to come back, because a webhook may keep the others for long. The service accounts
of a namespace count as one user: eight of them would take all places.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from localkube.apiserver import status
from localkube.apiserver.long_work import MOST_WAITING
from localkube.apiserver.security.identities import party_of
from localkube.apiserver.waiting import within_a_task

LARGE_BYTES = 32 * 1024  # of a body
OF_ONE_USER = 2
OF_ALL = 16


class _Line:
    __slots__ = ("count", "places")

    def __init__(self) -> None:
        self.count = 0  # who has a place, and who waits for one
        self.places = asyncio.Semaphore(OF_ONE_USER)


class LargeWrites:
    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._count = 0

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Raises ApiError 429."""
        await within_a_task()
        party = party_of(user)
        line = self._lines.setdefault(party, _Line())
        if line.count >= OF_ONE_USER + MOST_WAITING:
            raise _too_many(f"{MOST_WAITING} large requests of this user wait already")
        line.count += 1
        try:
            async with line.places:
                with self._counted():
                    yield
        finally:
            line.count -= 1
            if not line.count:
                del self._lines[party]

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._count >= OF_ALL:
            raise _too_many(f"{OF_ALL} large requests are worked on")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


def _too_many(found: str) -> status.ApiError:
    return status.too_many_requests(f"{found}, please try again later")
