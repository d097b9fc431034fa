"""Sessions: who is signed in, and with whose rights the API server is asked.

The console has no rights of its own. Whoever runs it on their own machine signs in with the key
that it printed. Where it serves several users, each signs in with a token of the cluster and sees
what that token may see.
"""

import hmac
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from gpupool.console.sight import Sight
from kubeclient.client import Kube

_MOST = 400  # sessions at a time; one more ends one
_LASTS_S = 12 * 3600.0


@dataclass(slots=True)
class Session:
    """One signed-in visitor. `closing` ends what the session alone uses."""

    kube: Kube
    sight: Sight
    ends: float
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)
    whose: str = ""  # the user; where nobody knows them, who has the same token
    streams: int = 0  # pages, logs and terminals that are open and follow the cluster
    root: "Session | None" = None  # of a visit to another cluster of the owner: their own session
    # The owner's other clusters, by key; the text tells one cluster from the next of that name.
    others: dict[str, tuple[str, "Session"]] = field(default_factory=dict)


@dataclass(slots=True)
class Sessions:
    clock: Callable[[], float]
    _open: dict[str, Session] = field(default_factory=dict)  # by cookie, oldest first

    async def begin(self, whose: str, kube: Kube, sight: Sight, closing: AsyncExitStack) -> str:
        """Returns the session's cookie."""
        now = self.clock()
        for cookie in self._over(now):
            await self.end(cookie)
        cookie = secrets.token_urlsafe(32)
        self._open[cookie] = Session(kube, sight, now + _LASTS_S, closing, whose)
        return cookie

    def _over(self, now: float) -> list[str]:
        """The sessions that end before one more begins."""
        left = {cookie: each for cookie, each in self._open.items() if each.ends > now}
        over = [cookie for cookie in self._open if cookie not in left]
        while len(left) >= _MOST:
            over.append(_one_too_many(left))
            del left[over[-1]]
        return over

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


def _one_too_many(sessions: Mapping[str, Session]) -> str:
    """The oldest of whoever has the most: one who signs in again and again ends only their own."""
    held = Counter(each.whose for each in sessions.values())
    most = max(held.values())
    return next(cookie for cookie, each in sessions.items() if held[each.whose] == most)


def is_key(given: str, key: str) -> bool:
    """Compares in constant time."""
    # An empty key means that there is none: it must not match an empty input.
    return bool(key) and hmac.compare_digest(given.encode(), key.encode())
