"""The transport inside the process: a client's call is a call of the app, no socket between.

Controllers, kubelets and the scheduler of the local cluster use it; on a real cluster the same
code gets the HTTPS transport instead.
"""

from collections.abc import AsyncGenerator, Mapping
from urllib.parse import urlencode

from kubeclient.errors import NoAnswer, refusal
from kubeclient.turns import Turns
from localkube.apiserver.http.bodies import end
from localkube.apiserver.request import Answer, Handler, Reply, Request, Stream, User

_MOST_BYTES = 64 * 1024 * 1024


class InProcess:
    def __init__(self, handle: Handler, user: User, manager: str = "") -> None:
        """`manager`: noted in managedFields as owner of what it writes; without one, nobody is
        noted.
        """
        self._handle = handle
        self._user = user
        self._manager = manager
        self._turns = Turns()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, bytes]:
        reply = await self._send(method, path, query, headers, body)
        if isinstance(reply, Answer):
            return reply.status, _whole(reply)
        assert isinstance(reply, Stream), f"{method} {path} gave no answer"
        return reply.status, await _gathered(reply, f"{method} {path}")

    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        reply = await self._send("GET", path, query, headers, b"")
        if isinstance(reply, Answer):
            raise refusal(reply.status, _whole(reply))
        assert isinstance(reply, Stream)
        async for chunk in reply.chunks:
            yield chunk

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        request = Request(
            method=method,
            path=path,
            query_string=urlencode(query) if query else "",
            headers={**headers, "user-agent": self._manager} if self._manager else headers,
            body=body,
            user=self._user,
            track_fields=bool(self._manager),
        )
        # A call need not wait for anything, and whoever makes thousands of them, one after the
        # other, would keep all others of the loop waiting.
        await self._turns.next()
        return await self._handle(request)


async def _gathered(stream: Stream, what: str) -> bytes:
    """A large answer of another API server. Raises NoAnswer."""
    body = bytearray()
    try:
        async for chunk in stream.chunks:
            body += chunk
            if len(body) > _MOST_BYTES:
                raise NoAnswer(f"{what}: the answer is larger than {_MOST_BYTES} bytes")
    except ConnectionResetError as error:
        raise NoAnswer(f"{what}: the answer broke off: {error}") from error
    finally:
        await end(stream.chunks)
    return bytes(body)


def _whole(answer: Answer) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
