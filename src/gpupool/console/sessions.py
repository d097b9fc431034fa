"""Sessions: who is signed in, and with whose rights the API server is asked.

The console has no rights of its own. Whoever runs it on their own machine signs in with the key
that it printed. Where it serves several users, each signs in with a token of the cluster and sees
what that token may see.
"""

import hmac
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from gpupool.console.sight import Sight
from kubeclient.client import Kube

_MOST = 400  # sessions at a time; one more ends the oldest
_LASTS_S = 12 * 3600.0


@dataclass(slots=True)
class Session:
    """One signed-in visitor. `closing` ends what the session alone uses."""

    kube: Kube
    sight: Sight
    ends: float
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)
    streams: int = 0  # pages, logs and terminals that are open and follow the cluster
    root: "Session | None" = None  # of a visit to another cluster of the owner: their own session
    # The owner's other clusters, by key; the text tells one cluster from the next of that name.
    others: dict[str, tuple[str, "Session"]] = field(default_factory=dict)


@dataclass(slots=True)
class Sessions:
    clock: Callable[[], float]
    _open: dict[str, Session] = field(default_factory=dict)  # by cookie, oldest first

    async def begin(self, kube: Kube, sight: Sight, closing: AsyncExitStack) -> str:
        """Returns the session's cookie."""
        now = self.clock()
        over = [cookie for cookie, each in self._open.items() if each.ends <= now]
        over += list(self._open)[: max(0, len(self._open) - len(over) - _MOST + 1)]
        for cookie in dict.fromkeys(over):
            await self.end(cookie)
        cookie = secrets.token_urlsafe(32)
        self._open[cookie] = Session(kube, sight, now + _LASTS_S, closing)
        return cookie

    def find(self, cookie: str) -> Session | None:
        session = self._open.get(cookie)
        return session if session is not None and session.ends > self.clock() else None

    async def end(self, cookie: str) -> None:
        session = self._open.pop(cookie, None)
        if session is not None:
            for each in (session, *(other for _, other in session.others.values())):
                each.ends = float("-inf")  # open streams see it
                await each.closing.aclose()

    async def end_all(self) -> None:
        for cookie in list(self._open):
            await self.end(cookie)


def is_key(given: str, key: str) -> bool:
    """Compares in constant time."""
    # An empty key means that there is none: it must not match an empty input.
    return bool(key) and hmac.compare_digest(given.encode(), key.encode())
