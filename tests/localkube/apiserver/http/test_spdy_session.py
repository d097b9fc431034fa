"""Messages of millions of SPDY frames: they are read in turns, and only as far as there is room."""

import asyncio
import struct

import pytest

from localkube.apiserver.http import spdy
from localkube.apiserver.http.spdy_session import SpdySession, SpdyStream
from tests.faults.loop_watchdog import Watchdog
from tests.localkube.apiserver.http.spdy_client import Framer, control
from tests.localkube.apiserver.http.wire_client import PATIENCE_S, eventually

_EMPTY_DATA = struct.pack(">II", 1, 0)
_SETTINGS = control(4, b"")
_PING = control(6, struct.pack(">I", 1))


def _headers(count: int) -> bytes:
    framer, stream = Framer(), struct.pack(">I", 1)
    large = {"a": "x" * 60_000}
    return b"".join(control(8, stream + framer.block(large)) for _ in range(count))


class _Socket:
    """Says one message, and then leaves."""

    subprotocol = ""

    def __init__(self, *messages: bytes) -> None:
        self._messages = list(messages)
        self.is_read = False

    async def receive(self) -> bytes | None:
        if self._messages:
            return self._messages.pop(0)
        self.is_read = True
        return None

    async def send(self, data: bytes | str) -> None:
        pass

    async def wait_lost(self) -> None:
        await asyncio.Event().wait()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        pass


@pytest.mark.parametrize(
    "message",
    [_EMPTY_DATA * 100_000, _SETTINGS * 100_000, _PING * 50_000, _headers(2_000)],
    ids=["data", "settings", "pings", "headers that inflate"],
)
async def test_many_frames_in_one_message_leave_the_loop_to_others(message: bytes) -> None:
    socket = _Socket(message)
    with Watchdog().watching() as watchdog:
        async with asyncio.timeout(PATIENCE_S):
            await SpdySession(socket).run(lambda _: False)
    assert socket.is_read
    assert not watchdog.stalls, watchdog.stalls


async def test_no_frame_is_taken_while_there_is_no_room() -> None:
    opened: list[SpdyStream] = []
    frame = spdy.data(1, b"x" * 30_000)
    socket = _Socket(Framer().syn_stream(1, {"port": "1"}) + frame * 100)

    def welcome(stream: SpdyStream) -> bool:
        opened.append(stream)
        return True

    running = asyncio.create_task(SpdySession(socket).run(welcome))
    await eventually(lambda: bool(opened))
    for _ in range(3):
        assert sum(map(len, opened[0]._unread)) <= 1024 * 1024 + len(frame)
        assert await opened[0].read()
        await asyncio.sleep(0)
    assert not socket.is_read
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
