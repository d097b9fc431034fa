"""Port-forward by SPDY streams in a WebSocket, as kubectl does it."""

import asyncio
import contextlib

from localkube.apiserver.http.spdy_session import SpdySession, SpdyStream
from localkube.apiserver.request import WebSocket
from localkube.apiserver.subresources.forwarding import Target, forward, until_first

TUNNEL = "SPDY/3.1+portforward.k8s.io"

_DATA, _ERROR = "data", "error"


class Pairs:
    """Streams that wait for their other half, by request id."""

    def __init__(self) -> None:
        self._waiting: dict[str, SpdyStream] = {}

    def matched(self, stream: SpdyStream) -> tuple[SpdyStream, SpdyStream] | None:
        """Data and error stream, once both are there."""
        id = stream.headers.get("requestid", "")
        other = self._waiting.pop(id, None)
        if other is None:
            self._waiting[id] = stream
            return None
        both = (stream, other)
        return both if _type(stream) == _DATA else (other, stream)

    def has_same(self, stream: SpdyStream) -> bool:
        other = self._waiting.get(stream.headers.get("requestid", ""))
        return other is not None and _type(other) == _type(stream)


async def forward_streams(target: Target, socket: WebSocket) -> None:
    await until_first(_serve(target, socket), socket.wait_lost())


async def _serve(target: Target, socket: WebSocket) -> None:
    session, pairs = SpdySession(socket), Pairs()
    forwards: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as tasks:

        def opened(stream: SpdyStream) -> bool:
            if not _is_usable(stream) or pairs.has_same(stream):
                return False
            pair = pairs.matched(stream)
            if pair is not None:
                task = tasks.create_task(_forward_pair(target, *pair), name="port-forward")
                forwards.add(task)
                task.add_done_callback(forwards.discard)
            return True

        with contextlib.suppress(ConnectionResetError):
            await session.run(opened)
        for task in forwards:
            task.cancel()


def _type(stream: SpdyStream) -> str:
    return stream.headers.get("streamtype", "")


def _is_usable(stream: SpdyStream) -> bool:
    port = stream.headers.get("port", "")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 2**16
    return is_port and _type(stream) in (_DATA, _ERROR)


async def _forward_pair(target: Target, data: SpdyStream, error: SpdyStream) -> None:
    with contextlib.suppress(ConnectionResetError):
        problem = await forward(target, int(data.headers["port"]), data)
        data.ignore_input()
        if problem is None:
            await data.close_write()
        else:
            await error.write(problem.encode())
            await data.reset()
        # kubectl waits for this end before it is done with the connection.
        await error.close_write()
