"""WebSockets over real sockets."""

import asyncio
import logging
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.protocol import HttpConnection
from localkube.apiserver.request import Answer, Reply, Request, Upgrade, WebSocket
from tests.localkube.apiserver.http.memory_wire import MemoryTransport, Tasks, answered
from tests.localkube.apiserver.http.websocket_client import Rejected, WebSocketClient, websocket
from tests.localkube.apiserver.http.wire_client import (
    PATIENCE_S,
    QUICK,
    connected,
    eventually,
    serving,
)

TUNNEL = "SPDY/3.1+portforward.k8s.io"

HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


async def echo(socket: WebSocket) -> None:
    while (message := await socket.receive()) is not None:
        with suppress(ConnectionResetError):
            await socket.send(message)


async def echoing(request: Request) -> Reply:
    return Upgrade(("v5.channel.k8s.io", TUNNEL, ""), echo)


async def test_messages_go_both_ways() -> None:
    async with serving(echoing) as server, websocket(server) as client:
        for message in (b"binary", "text", b"", "", b"a" * 1_000_000):
            client.send(message)
            assert await client.receive() == message
        client.close(1000)
        assert await client.receive() is None
        assert client.close_code == 1000
        assert await client.wire.rest() == b""


async def test_messages_sent_with_the_handshake_are_not_lost() -> None:
    async with serving(echoing) as server, connected(server) as wire:
        client = WebSocketClient(wire)
        opening = asyncio.create_task(client.open("/", []))
        await asyncio.sleep(0)
        wire.send(b"\x82\x82\x00\x00\x00\x00hi")
        await opening
        assert await client.receive() == b"hi"


async def test_the_subprotocol_is_the_clients_first_that_we_know() -> None:
    async with serving(echoing) as server:
        for offered, chosen in [
            ([TUNNEL], TUNNEL),
            (["base64url.bearer.authorization.k8s.io.c2VjcmV0", TUNNEL], TUNNEL),
            ([TUNNEL, "v5.channel.k8s.io"], TUNNEL),
            ([], None),
        ]:
            async with websocket(server, subprotocols=offered) as client:
                assert client.subprotocol == chosen


async def test_unknown_subprotocols_are_refused() -> None:
    async with serving(echoing) as server:
        with pytest.raises(Rejected) as rejected:
            async with websocket(server, subprotocols=["nope"]):
                pass
    assert rejected.value.status == 403
    assert b"requested protocol(s) are not supported: [nope]; supports [" in rejected.value.body


@pytest.mark.parametrize(
    "spoilt",
    [
        ("Upgrade: WebSocket", "Upgrade: SPDY/3.1"),
        ("GET", "POST"),
        ("Version: 13", "Version: 12"),
        ("dGhlIHNhbXBsZSBub25jZQ==", "short"),
        ("Connection: keep-alive, Upgrade\r\n", ""),
    ],
)
async def test_what_is_no_websocket_handshake_is_refused(spoilt: tuple[str, str]) -> None:
    async with serving(echoing) as server, connected(server) as wire:
        wire.send(HANDSHAKE.replace(*spoilt))
        answer = await wire.answer()
    assert answer.status == 400
    assert b'"message":"Upgrade request required"' in answer.body


async def test_the_handshake_is_the_one_of_the_rfc() -> None:
    async with serving(echoing) as server, connected(server) as wire:
        wire.send(HANDSHAKE)
        head = await wire.head()
    assert head.status == 101
    assert head.header("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_a_request_to_upgrade_may_get_an_ordinary_answer() -> None:
    async def handler(request: Request) -> Reply:
        return Answer(404, b"gone")

    async with serving(handler) as server, connected(server) as wire:
        wire.send(HANDSHAKE, b"\x82\x82\x00\x00\x00\x00hi")
        answer = await wire.answer()
        assert (answer.status, answer.body) == (404, b"gone")
        assert await wire.rest() == b""


async def test_fragments_are_put_together_and_pings_answered_in_between() -> None:
    async with serving(echoing) as server, websocket(server) as client:
        client.send(b"one ", finished=False)
        client.ping(b"still there?")
        assert await client.pong() == b"still there?"
        client.send(b"two ", finished=False)
        client.send(b"three")
        assert await client.receive() == b"one two three"


@pytest.mark.parametrize("fragments", [1, 20])
async def test_a_message_too_big_closes_with_1009(fragments: int) -> None:
    limits = msgspec.structs.replace(QUICK, message_bytes=10_000)
    async with serving(echoing, limits) as server, websocket(server) as client:
        for number in range(fragments):
            client.send(b"a" * (20_000 // fragments), finished=number == fragments - 1)
        assert await client.receive() is None
        assert client.close_code == 1009


@pytest.mark.parametrize(
    "raw",
    [
        b"\x82\x02hi",  # not masked
        b"\xf2\x82\x00\x00\x00\x00hi",  # reserved bits
        b"\x83\x82\x00\x00\x00\x00hi",  # reserved opcode
        b"\x09\x80\x00\x00\x00\x00",  # fragmented ping
        b"\x81\x81\x00\x00\x00\x00\xff",  # text that is not UTF-8
        b"\x80\x82\x00\x00\x00\x00hi",  # continuation of nothing
    ],
)
async def test_broken_frames_close_the_connection(raw: bytes) -> None:
    async with serving(echoing, QUICK) as server, websocket(server) as client:
        client.wire.send(raw)
        assert await client.receive() is None
        assert client.close_code in (1002, 1007)
        assert await client.wire.rest() == b""


async def test_the_server_closes_when_run_returns() -> None:
    async def run(socket: WebSocket) -> None:
        await socket.send(b"bye")

    async def handler(request: Request) -> Reply:
        return Upgrade(("",), run)

    async with serving(handler) as server, websocket(server) as client:
        assert await client.receive() == b"bye"
        assert await client.receive() is None
        assert client.close_code == 1000


async def test_a_client_that_still_sends_can_read_all_up_to_the_close() -> None:
    async def run(socket: WebSocket) -> None:
        await socket.receive()
        await socket.send(b"status")

    async def handler(request: Request) -> Reply:
        return Upgrade(("",), run)

    async with serving(handler) as server, websocket(server) as client:
        for _ in range(200):
            client.send(b"x" * 10_000)
        assert await client.receive() == b"status"
        assert await client.receive() is None


async def test_a_broken_run_closes_with_1011_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run(socket: WebSocket) -> None:
        raise RuntimeError("broken")

    async def handler(request: Request) -> Reply:
        return Upgrade(("",), run)

    with caplog.at_level(logging.ERROR):
        async with serving(handler, QUICK) as server, websocket(server) as client:
            assert await client.receive() is None
            assert client.close_code == 1011
    assert [record.getMessage() for record in caplog.records] == ["request failed"]


async def test_a_client_that_vanishes_ends_receive_and_send() -> None:
    ended: list[str] = []

    async def run(socket: WebSocket) -> None:
        assert await socket.receive() is None
        ended.append("receive")
        try:
            await socket.send(b"anybody?")
        except ConnectionResetError:
            ended.append("send")

    async def handler(request: Request) -> Reply:
        return Upgrade(("",), run)

    async with serving(handler) as server:
        async with websocket(server):
            pass
        await eventually(lambda: ended == ["receive", "send"])


async def test_a_slow_receiver_slows_the_client() -> None:
    go = asyncio.Event()

    async def run(socket: WebSocket) -> None:
        await go.wait()
        while (message := await socket.receive()) is not None:
            if message == b"last":
                await socket.send(b"seen")

    async def handler(request: Request) -> Reply:
        return Upgrade(("",), run)

    async with serving(handler) as server, websocket(server) as client:
        sent = 0
        with suppress(TimeoutError):
            while True:
                client.send(b"x" * 100_000)
                sent += 1
                async with asyncio.timeout(0.3):
                    await client.wire.writer.drain()
        assert sent < 300  # 30 MB would be far more than sockets hold
        client.send(b"last")
        go.set()
        assert await client.receive() == b"seen"


async def test_a_slow_client_slows_the_sender() -> None:
    sent = 0

    async def run(socket: WebSocket) -> None:
        nonlocal sent
        with suppress(ConnectionResetError):
            while True:
                await socket.send(b"x" * 100_000)
                sent += 1

    async def handler(request: Request) -> Reply:
        return Upgrade(("",), run)

    async with serving(handler) as server, websocket(server) as client:
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 1_000
        for _ in range(before + 5):
            assert len(await client.receive() or b"") == 100_000


async def test_pings_that_nobody_reads_the_answers_of_do_not_pile_up() -> None:
    transport, tasks = MemoryTransport(), Tasks()
    connection = HttpConnection(echoing, WireLimits(), tasks)
    connection.connection_made(transport)
    connection.data_received(HANDSHAKE.encode())
    await eventually(lambda: transport.written.startswith(b"HTTP/1.1 101"))
    connection.pause_writing()
    before = len(transport.written)
    connection.data_received(b"\x89\x80\x00\x00\x00\x00" * 10_000)
    await eventually(lambda: not transport.is_reading_paused)
    assert len(transport.written) == before
    connection.resume_writing()
    connection.data_received(b"\x89\x80\x00\x00\x00\x00")
    assert len(transport.written) > before
    connection.connection_lost(None)
    await tasks.settle()


async def test_closing_the_server_closes_websockets_with_1001() -> None:
    async with serving(echoing) as server, websocket(server) as client:
        client.send(b"there?")
        await client.receive()
        closing = asyncio.create_task(server.close(grace_s=PATIENCE_S))
        assert await client.receive() is None
        assert client.close_code == 1001
        client.wire.writer.close()
        await closing


def masked(first: int, payload: bytes) -> bytes:
    return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload


# The opcodes with and without the last-fragment bit, around the limits of their sizes.
almost_frames = st.builds(
    masked,
    st.sampled_from([0x00, 0x01, 0x02, 0x03, 0x08, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A, 0xC2]),
    st.sampled_from([b"", b"a", b"\xff", b"\x03\xe8", b"\x03\xe8bye", b"x" * 99, b"x" * 125]),
)


@settings(deadline=None)  # an event loop on a busy machine takes its time
@given(st.lists(st.one_of(st.binary(max_size=80), almost_frames), max_size=12))
def test_any_bytes_after_the_handshake_do_no_harm(parts: list[bytes]) -> None:
    limits = WireLimits(message_bytes=100, linger_s=0.001)
    written = asyncio.run(answered(echoing, [HANDSHAKE.encode(), *parts], limits))
    assert written.startswith(b"HTTP/1.1 101 ")
