"""Answers in chunks, and clients that leave."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator

import pytest

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.listening import NotLoopback
from localkube.apiserver.http.server import serve
from localkube.apiserver.request import Answer, Reply, Request, Stream
from tests.localkube.apiserver.http.wire_client import (
    PATIENCE_S,
    QUICK,
    connected,
    serving,
    wired,
)


class Events:
    """An endless watch that says what became of it."""

    def __init__(self, *, size: int = 10) -> None:
        self.sent = 0
        self.ended = asyncio.Event()
        self._size = size

    async def stream(self, request: Request) -> Reply:
        # Kept, so that only `aclose` can end it, and not the garbage collector.
        self._chunks = self._events()
        return Stream(self._chunks)

    async def _events(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"e" * self._size
                self.sent += 1
                await asyncio.sleep(0)
        finally:
            self.ended.set()

    async def wait_ended(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.ended.wait()


async def three(request: Request) -> Reply:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one"
        yield b""  # no end of the stream
        yield b"two"
        await asyncio.sleep(0)
        yield b"three"

    return Stream(chunks(), content_type="text/plain")


async def test_a_stream_is_chunked_and_the_connection_lives_on() -> None:
    async with wired(three) as wire:
        for _ in range(2):
            wire.request("GET", "/")
            head = await wire.head()
            assert (head.status, head.header("transfer-encoding")) == (200, "chunked")
            assert head.header("content-type") == "text/plain"
            assert head.header("cache-control") == "no-cache, private"
            assert [chunk async for chunk in wire.chunks()] == [b"one", b"two", b"three"]


async def test_a_stream_to_http_1_0_ends_with_the_connection() -> None:
    async with wired(three) as wire:
        wire.send("GET / HTTP/1.0\r\n\r\n")
        head = await wire.head()
        assert head.header("transfer-encoding") is None
        assert await wire.rest() == b"onetwothree"


async def test_head_of_a_stream_has_no_body() -> None:
    events = Events()
    async with wired(events.stream) as wire:
        wire.request("HEAD", "/")
        wire.request("HEAD", "/")
        for _ in range(2):
            assert (await wire.answer(to_head=True)).status == 200
    assert events.sent == 0


async def test_the_head_of_a_stream_does_not_wait_for_its_first_chunk() -> None:
    async def silent(request: Request) -> Reply:
        async def chunks() -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

        return Stream(chunks())

    async with wired(silent) as wire:
        wire.request("GET", "/")
        assert (await wire.head()).status == 200


async def test_a_client_that_leaves_ends_the_stream() -> None:
    events = Events()
    async with serving(events.stream) as server:
        async with connected(server) as wire:
            wire.request("GET", "/")
            await wire.head()
            await wire.chunk()
        await events.wait_ended()


async def test_a_client_that_leaves_without_reading_ends_the_stream() -> None:
    events = Events(size=1_000_000)
    async with serving(events.stream) as server:
        async with connected(server) as wire:
            wire.request("GET", "/")
            await wire.head()
            before = -1
            while before != events.sent:
                before = events.sent
                await asyncio.sleep(0.05)
        await events.wait_ended()


async def test_a_client_that_leaves_ends_a_stream_that_is_silent() -> None:
    ended = asyncio.Event()

    async def handler(request: Request) -> Reply:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                await asyncio.Event().wait()
                yield b""
            finally:
                ended.set()

        return Stream(chunks())

    async with serving(handler) as server:
        async with connected(server) as wire:
            wire.request("GET", "/")
            await wire.head()
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()


async def test_a_client_that_leaves_cancels_its_handler() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Reply:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Answer(200)

    async with serving(handler) as server:
        async with connected(server) as wire:
            wire.request("GET", "/")
            await started.wait()
        async with asyncio.timeout(PATIENCE_S):
            await cancelled.wait()


async def test_a_handler_may_outlive_its_cancellation_and_answers_nobody() -> None:
    started, done = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Reply:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        done.set()
        return Answer(200)

    async with serving(handler) as server:
        async with connected(server) as wire:
            wire.request("GET", "/")
            await started.wait()
        async with asyncio.timeout(PATIENCE_S):
            await done.wait()


async def test_a_slow_reader_slows_the_stream() -> None:
    events = Events(size=100_000)
    async with wired(events.stream) as wire:
        wire.request("GET", "/")
        await wire.head()
        before = -1
        async with asyncio.timeout(PATIENCE_S):
            while before != events.sent:
                before = events.sent
                await asyncio.sleep(0.1)
        stuck_at = events.sent
        assert stuck_at < 1_000  # not 100 MB in memory
        for _ in range(stuck_at + 20):
            assert len(await wire.chunk()) == 100_000
        assert events.sent > stuck_at


async def test_a_reader_of_a_stream_may_pause_for_long() -> None:
    events = Events(size=100_000)
    async with wired(events.stream, QUICK) as wire:
        wire.request("GET", "/")
        await wire.head()
        await asyncio.sleep(3 * QUICK.stall_timeout_s)
        for _ in range(200):
            assert len(await wire.chunk()) == 100_000


async def test_a_broken_stream_is_cut_off_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(request: Request) -> Reply:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"one"
            raise RuntimeError("broken")

        return Stream(chunks())

    with caplog.at_level(logging.ERROR):
        async with wired(handler) as wire:
            wire.request("GET", "/")
            await wire.head()
            assert not (await wire.rest()).endswith(b"0\r\n\r\n")
    assert [record.getMessage() for record in caplog.records] == ["request failed"]


async def test_a_stream_whose_own_source_is_reset_is_cut_off() -> None:
    async def handler(request: Request) -> Reply:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"one"
            raise ConnectionResetError("of the node, not of the client")

        return Stream(chunks())

    async with wired(handler) as wire:
        wire.request("GET", "/")
        await wire.head()
        assert not (await wire.rest()).endswith(b"0\r\n\r\n")


async def test_closing_the_server_ends_streams_cleanly_and_lets_answers_out() -> None:
    events = Events()
    started = asyncio.Event()

    async def handler(request: Request) -> Reply:
        if request.path == "/watch":
            return await events.stream(request)
        started.set()
        await asyncio.sleep(0.05)
        return Answer(200, b"done")

    async with serving(handler) as server:
        async with connected(server) as watch, connected(server) as slow, connected(server) as idle:
            watch.request("GET", "/watch")
            await watch.head()
            slow.request("GET", "/slow")
            await started.wait()
            closing = asyncio.create_task(server.close(grace_s=PATIENCE_S))
            assert (await slow.answer()).body == b"done"
            assert (await watch.rest()).endswith(b"0\r\n\r\n")
            assert await idle.rest() == b""
            await closing
        await events.wait_ended()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)


async def test_closing_the_server_does_not_wait_longer_than_told() -> None:
    cancelled = asyncio.Event()
    started = asyncio.Event()

    async def handler(request: Request) -> Reply:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Answer(200)

    async with serving(handler) as server, connected(server) as wire:
        wire.request("GET", "/")
        await started.wait()
        async with asyncio.timeout(PATIENCE_S):
            await server.close(grace_s=0.01)
        assert cancelled.is_set()


async def test_tls_carries_it_all(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    events = Events()
    body = b"b" * 3_000_000

    async def handler(request: Request) -> Reply:
        if request.path == "/watch":
            return await events.stream(request)
        return Answer(200, [request.body] * 3)

    async with serving(handler, tls=server_tls) as server:
        async with connected(server, client_tls) as wire:
            for _ in range(2):
                wire.request("POST", "/", body=body)
                assert (await wire.answer()).body == body * 3
            wire.request("GET", "/watch")
            await wire.head()
            assert await wire.chunk() == b"e" * 10
        await events.wait_ended()


async def test_a_client_that_never_begins_its_handshake_is_left(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async def handler(request: Request) -> Reply:
        return Answer(200)

    async with serving(handler, QUICK, server_tls) as server:
        async with connected(server) as mute:
            assert await mute.rest() == b""
        async with connected(server, client_tls) as wire:
            wire.request("GET", "/")
            assert (await wire.answer()).status == 200


async def test_plain_http_on_the_tls_port_is_left(server_tls: ssl.SSLContext) -> None:
    async def handler(request: Request) -> Reply:
        raise AssertionError("never called")

    async with serving(handler, tls=server_tls) as server, connected(server) as wire:
        wire.request("GET", "/")
        assert b"HTTP/1.1 200" not in await wire.rest()


async def test_both_loopback_addresses_share_the_port() -> None:
    async def handler(request: Request) -> Reply:
        return Answer(200)

    async with serving(handler) as server:
        for address in ("127.0.0.1", "::1"):
            try:
                reader, writer = await asyncio.open_connection(address, server.port)
            except OSError:
                assert address == "::1"  # a machine without IPv6
                continue
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
            await writer.wait_closed()


async def test_other_addresses_need_permission() -> None:
    with pytest.raises(NotLoopback, match=r"0\.0\.0\.0 is not a loopback address"):
        await serve(three, host="0.0.0.0", ssl_context=None, limits=WireLimits())


async def test_a_taken_port_is_an_error() -> None:
    async with serving(three) as server:
        with pytest.raises(OSError, match="in use"):
            await serve(three, port=server.port, ssl_context=None, limits=WireLimits())
