"""A transport that loses requests and answers as the test chooses."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from enum import Enum, auto

import orjson

from kubeclient.client import Headers, Kube, Query, Transport
from kubeclient.errors import NoAnswer


class Fault(Enum):
    NONE = auto()
    LOST_REQUEST = auto()
    LOST_ANSWER = auto()
    REFUSED = auto()
    BUSY = auto()
    FAILED_AFTERWARDS = auto()
    ASKED_TWICE = auto()  # a proxy sends it twice and returns the second answer


_STATUSES = {
    Fault.REFUSED: (409, "Conflict"),
    Fault.BUSY: (429, "TooManyRequests"),
}
Choose = Callable[[str, str], Fault]  # by method and path


class Unreliable:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.choose: Choose = lambda _method, _path: Fault.NONE
        self._cut = asyncio.Event()

    @property
    def kube(self) -> Kube:
        return Kube(self)

    def cut_watches(self) -> None:
        self._cut.set()
        self._cut = asyncio.Event()

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        fault = self.choose(method, path)
        if fault in _STATUSES:
            code, reason = _STATUSES[fault]
            return code, orjson.dumps({"kind": "Status", "code": code, "reason": reason})
        if fault is Fault.LOST_REQUEST:
            raise NoAnswer("the request was lost")
        for _ in range(2 if fault is Fault.ASKED_TWICE else 1):
            answer = await self._transport.call(
                method, path, query=query, headers=headers, body=body
            )
        if fault is Fault.LOST_ANSWER:
            raise NoAnswer("the answer was lost")
        if fault is Fault.FAILED_AFTERWARDS:
            return 500, b"etcdserver: request timed out"
        return answer

    async def stream(
        self, path: str, *, query: Query, headers: Headers
    ) -> AsyncGenerator[bytes, None]:
        cut = self._cut
        chunks = self._transport.stream(path, query=query, headers=headers)
        try:
            while True:
                next_chunk = asyncio.ensure_future(anext(chunks))
                ended = asyncio.ensure_future(cut.wait())
                try:
                    await asyncio.wait((next_chunk, ended), return_when=asyncio.FIRST_COMPLETED)
                finally:  # also when the reader is cancelled: a generator that runs cannot close
                    is_there = next_chunk.done()
                    for task in (next_chunk, ended):
                        task.cancel()
                    await asyncio.gather(next_chunk, ended, return_exceptions=True)
                if not is_there:
                    raise NoAnswer("the connection was cut")
                yield next_chunk.result()
        except StopAsyncIteration:
            return
        finally:
            await chunks.aclose()


def unreliable(kube: Kube) -> Unreliable:
    return Unreliable(kube._transport)
