"""Limits the writes and streams that run at the same time; what is too much gets a 429.

    with in_flight.mutations:                        # a write, for as long as it takes
        ...
    with in_flight.watch(user.name) as slot:         # a stream: taken now, given back at its end
        return slot.hold(watch(...))

Only for requests that come over the wire: the process's own controllers do not wait for themselves.
"""

from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from types import TracebackType

from localkube.apiserver.request import Reply, Stream, Upgrade, WebSocket
from localkube.apiserver.security.identities import party_of
from localkube.apiserver.security.limits import Limits
from localkube.apiserver.status import ApiError, too_many_requests


class Tally:
    """How many of something there are. Used as a context, it counts one for that long.

    No party (a user, or the service accounts of a namespace) takes more than half of the places."""

    def __init__(self, what: str, limit: int, limit_per_user: int | None = None) -> None:
        self._what = what
        self._limit = limit
        self._limit_per_user = limit_per_user
        self.count = 0
        self._by_user: Counter[str] = Counter()
        self._by_party: Counter[str] = Counter()

    def __enter__(self) -> None:
        """Raises ApiError 429."""
        if self.count >= self._limit:
            raise self._too_many(f"{self.count} {self._what} at a time")
        self.count += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.count -= 1

    def take(self, user: str) -> "Slot":
        """Raises ApiError 429."""
        if self._limit_per_user is not None and self._by_user[user] >= self._limit_per_user:
            raise self._too_many(f"{self._limit_per_user} {self._what} of one user at a time")
        party, half = party_of(user), max(1, self._limit // 2)
        if self._by_party[party] >= half:
            raise self._too_many(f"{half} {self._what} of one user or namespace at a time")
        # This may raise, so the user is counted after it.
        self.__enter__()
        self._by_user[user] += 1
        self._by_party[party] += 1
        return Slot(self, user)

    def give_back(self, user: str) -> None:
        self.count -= 1
        for counted, name in ((self._by_user, user), (self._by_party, party_of(user))):
            counted[name] -= 1
            if not counted[name]:
                del counted[name]

    def _too_many(self, found: str) -> ApiError:
        return too_many_requests(f"Too many requests: the server allows {found}")


class Slot:
    """One place of a Tally. Given back when the `with` ends, unless an answer holds it by then."""

    def __init__(self, tally: Tally, user: str) -> None:
        self._tally = tally
        self._user = user
        self._is_taken = True
        self._is_held = False

    def __enter__(self) -> "Slot":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_held:
            self.release()

    def release(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._tally.give_back(self._user)

    def hold(self, reply: Reply) -> Reply:
        """The reply, which gives the place back when it has come to its end."""
        if isinstance(reply, Stream):
            self._is_held = True
            reply.chunks = _Held(reply.chunks, self)
        elif isinstance(reply, Upgrade):
            # The handshake may yet fail and nothing run, so the place is taken anew by the run.
            return Upgrade(reply.subprotocols, partial(self._run, reply))
        return reply

    async def _run(self, upgrade: Upgrade, socket: WebSocket) -> None:
        with self._tally.take(self._user):
            await upgrade.run(socket)


class _Held:
    """Chunks that give a place back when they end, are closed, or are forgotten."""

    def __init__(self, chunks: AsyncIterator[bytes], slot: Slot) -> None:
        self._chunks = chunks
        self._slot = slot

    def __aiter__(self) -> "_Held":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._chunks.__anext__()
        except BaseException:
            self._slot.release()
            raise

    async def aclose(self) -> None:
        self._slot.release()
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()

    # A stream that was never begun is not closed, only forgotten.
    def __del__(self) -> None:
        self._slot.release()


class InFlight:
    def __init__(self, limits: Limits) -> None:
        self.mutations = Tally("writes", limits.mutations)
        self._watches = Tally("watches", limits.watches, limits.watches_per_user)
        self._streams = Tally("exec, attach and port-forward streams", limits.streams)
        self._logs = Tally("followed logs", limits.followed_logs)

    def watch(self, user: str) -> Slot:
        return self._watches.take(user)

    def stream(self, user: str) -> Slot:
        return self._streams.take(user)

    def followed_log(self, user: str) -> Slot:
        return self._logs.take(user)
