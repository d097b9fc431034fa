"""Sessions: who is signed in, and with whose rights the API server is asked.

The console has no rights of its own. Whoever runs it on their own machine signs in with the key
that it printed. Where it serves several users, each signs in with a token of the cluster and sees
what that token may see.
"""

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from gpupool.console.overview import ClusterView
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import NODES, SERVICES

_MOST = 100  # sessions at a time; one more ends the oldest
_LASTS_S = 12 * 3600.0
_FRESH_S = 2.0
_COST_FACTOR = 5  # a reading that took a second is used for five

ReadCluster = Callable[[Kube], Awaitable[ClusterView]]


class Session:
    """One signed-in visitor. However often pages are requested, the API server is asked at most
    every _FRESH_S, and more rarely if reading the cluster takes long."""

    def __init__(self, kube: Kube, read: ReadCluster, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._read = read
        self._clock = clock
        self._seen: ClusterView | None = None
        self._good_until = float("-inf")
        self._reading = asyncio.Lock()
        self.ends = clock() + _LASTS_S
        self.closing = AsyncExitStack()

    async def allowed(self) -> None:
        """Raises KubeError when the visitor may not even list nodes."""
        await self._kube.list(NODES, query={"limit": "1"})

    async def seen(self) -> ClusterView:
        """Raises KubeError."""
        # Requests that come at the same time wait for one reading, and share it.
        async with self._reading:
            began = self._clock()
            if self._seen is None or began >= self._good_until:
                self._seen = await self._read(self._kube)
                took = self._clock() - began
                self._good_until = self._clock() + max(_FRESH_S, _COST_FACTOR * took)
            return self._seen

    async def services(self) -> list[Obj]:
        """Raises KubeError."""
        return (await self._kube.list(SERVICES)).items


@dataclass(slots=True)
class Sessions:
    clock: Callable[[], float]
    _open: dict[str, Session] = field(default_factory=dict)  # by cookie, oldest first

    async def begin(self, session: Session) -> str:
        """Returns the session's cookie."""
        now = self.clock()
        over = [cookie for cookie, each in self._open.items() if each.ends <= now]
        over += list(self._open)[: max(0, len(self._open) - len(over) - _MOST + 1)]
        for cookie in dict.fromkeys(over):
            await self.end(cookie)
        cookie = secrets.token_urlsafe(32)
        self._open[cookie] = session
        return cookie

    def find(self, cookie: str) -> Session | None:
        session = self._open.get(cookie)
        return session if session is not None and session.ends > self.clock() else None

    async def end(self, cookie: str) -> None:
        session = self._open.pop(cookie, None)
        if session is not None:
            await session.closing.aclose()

    async def end_all(self) -> None:
        for cookie in list(self._open):
            await self.end(cookie)


def is_key(given: str, key: str) -> bool:
    """Compares in constant time."""
    # An empty key means that there is none: it must not match an empty input.
    return bool(key) and hmac.compare_digest(given.encode(), key.encode())
