"""What is too large, too slow, too many or malformed."""

import asyncio
import gc
import logging
import resource
import socket
from contextlib import AsyncExitStack, suppress

import msgspec
import pytest

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.request import Answer, Reply, Request, User
from tests.localkube.apiserver.http.wire_client import (
    PATIENCE_S,
    QUICK,
    USUAL,
    Wire,
    connected,
    eventually,
    serving,
    wired,
)

SMALL = msgspec.structs.replace(QUICK, body_bytes=1_000, idle_timeout_s=60.0)


async def hello(request: Request) -> Reply:
    return Answer(200, b"hello")


async def hello_user(request: Request) -> Reply:
    """Everybody who sends a request is somebody."""
    request.user = User("me")
    return Answer(200, b"hello")


async def test_a_body_declared_too_large_is_refused_before_it_comes() -> None:
    async with wired(hello, SMALL) as wire:
        wire.request("POST", "/", "Content-Length: 1001")
        answer = await wire.answer()
        assert answer.status == 413
        assert b'"message":"Request entity too large: limit is 1000"' in answer.body
        assert await wire.rest() == b""


async def test_a_chunked_body_is_refused_once_it_is_too_large() -> None:
    async with wired(hello, SMALL) as wire:
        wire.request("POST", "/", "Transfer-Encoding: chunked")
        for _ in range(3):
            wire.send(b"190\r\n" + b"a" * 400 + b"\r\n")
        assert (await wire.answer()).status == 413


async def test_a_client_that_sends_on_can_still_read_why_it_was_refused() -> None:
    async with wired(hello, msgspec.structs.replace(SMALL, linger_s=20.0)) as wire:
        wire.request("POST", "/", body=b"a" * 5_000_000)
        assert (await wire.answer()).status == 413


async def test_a_body_at_the_limit_is_taken() -> None:
    async with wired(hello, SMALL) as wire:
        wire.request("POST", "/", body=b"a" * 1_000)
        assert (await wire.answer()).status == 200


async def test_a_long_url_is_refused() -> None:
    async with wired(hello, QUICK) as wire:
        wire.request("GET", "/" + "a" * 8_192)
        assert (await wire.answer()).status == 414
        assert await wire.rest() == b""


async def test_large_headers_are_refused() -> None:
    async with wired(hello, QUICK) as wire:
        wire.request("GET", "/", "X: " + "a" * 33_000)
        assert (await wire.answer()).status == 431
        assert await wire.rest() == b""


async def test_many_headers_are_refused() -> None:
    async with wired(hello) as wire:
        wire.request("GET", "/", *(f"X-{n}: 1" for n in range(100)))
        assert (await wire.answer()).status == 431


async def test_as_many_headers_as_allowed_are_taken() -> None:
    async with wired(hello) as wire:
        wire.request("GET", "/", *(f"X-{n}: 1" for n in range(99)))
        assert (await wire.answer()).status == 200


@pytest.mark.parametrize("start", ["GET / HTTP/1.1\r\nX: ", "GET /"])
async def test_a_head_without_end_is_refused(start: str) -> None:
    async with wired(hello) as wire:
        wire.send(start)
        for _ in range(100):
            wire.send("a" * 1_000)
            await asyncio.sleep(0)
        assert (await wire.answer()).status in (414, 431)


async def test_a_trailer_without_end_is_refused() -> None:
    async with wired(hello) as wire:
        wire.request("POST", "/", "Transfer-Encoding: chunked")
        wire.send("0\r\nX: ")
        for _ in range(400):
            wire.send("a" * 1_000)
            await asyncio.sleep(0)
        assert (await wire.answer()).status == 400


MALFORMED = {
    "no HTTP": "GARBAGE\r\n\r\n",
    "TLS to a plain port": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no host": "GET / HTTP/1.1\r\n\r\n",
    "two hosts": "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "length and chunks": (
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n"
    ),
    "chunks and length": (
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
        "0\r\n\r\n"
    ),
    "two lengths": (
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"
    ),
    "signed length": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc",
    "length overflow": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "folded header": "GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
    "space before colon": "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "bare line feeds": "GET / HTTP/1.1\nHost: x\n\n",
    "control character": "GET / HTTP/1.1\r\nHost: x\x00\r\n\r\n",
    "bad chunk size": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "huge chunk size": (
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"
    ),
    "chunk too long": (
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n"
    ),
    "chunks in HTTP/1.0": "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "URL of a proxy": "GET http://other/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED.keys())
async def test_malformed_requests_get_400_and_the_connection_closes(raw: str) -> None:
    called: list[Request] = []

    async def handler(request: Request) -> Reply:
        called.append(request)
        return Answer(200)

    async with wired(handler, QUICK) as wire:
        wire.send(raw.encode("latin-1"))
        answer = await wire.answer()
        assert answer.status == 400
        assert b'"kind":"Status"' in answer.body
        assert answer.header("connection") == "close"
        assert await wire.rest() == b""
    assert called == []


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ],
)
async def test_what_we_do_not_speak_is_refused(raw: str, status: int) -> None:
    async with wired(hello, QUICK) as wire:
        wire.send(raw)
        assert (await wire.answer()).status == status
        assert await wire.rest() == b""


async def test_requests_before_a_malformed_one_are_answered() -> None:
    async def handler(request: Request) -> Reply:
        await asyncio.sleep(0)
        return Answer(200)

    async with wired(handler, QUICK) as wire:
        wire.request("GET", "/a")
        wire.request("GET", "/b")
        wire.send("GARBAGE\r\n\r\n")
        assert [(await wire.answer()).status for _ in range(3)] == [200, 200, 400]
        assert await wire.rest() == b""


async def test_unfinished_bodies_have_a_limit_together() -> None:
    limits = msgspec.structs.replace(QUICK, unfinished_bytes=5_000, body_timeout_s=60.0)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(hello, limits))
        writers = [await stack.enter_async_context(connected(server)) for _ in range(3)]
        for writer in writers[:2]:
            writer.request("POST", "/", "Content-Length: 3000")
            writer.send(b"a" * 2_400)
        await eventually(lambda: server.budget.held == 4_800)
        writers[2].request("POST", "/", "Content-Length: 3000")
        writers[2].send(b"a" * 2_400)
        answer = await writers[2].answer()
        assert (answer.status, answer.header("retry-after")) == (429, "1")
        assert server.budget.held == 4_800
        writers[0].send(b"a" * 600)
        assert (await writers[0].answer()).status == 200
        await writers[1].leave()
        await eventually(lambda: server.budget.held == 0)


async def test_a_client_that_does_not_finish_its_head_is_left() -> None:
    async with wired(hello, QUICK) as wire:
        wire.send("GET / HTTP/1.1\r\nHost: x\r\n")
        assert await wire.rest() == b""


async def test_a_trickle_of_headers_gains_no_time() -> None:
    async with wired(hello, QUICK) as wire:
        wire.send("GET / HTTP/1.1\r\nHost: x\r\n")

        async def trickle() -> None:
            number = 0
            while True:
                wire.send(f"X-{number % 50}: 1")
                await asyncio.sleep(0.02)
                number += 1

        drip = asyncio.create_task(trickle())
        try:
            assert await wire.rest() == b""
        finally:
            drip.cancel()


async def test_a_client_that_does_not_finish_its_body_is_left() -> None:
    async with wired(hello, QUICK) as wire:
        wire.request("POST", "/", "Content-Length: 10")
        wire.send("12345")
        assert await wire.rest() == b""


async def test_an_idle_connection_is_closed() -> None:
    async with wired(hello, QUICK) as wire:
        wire.request("GET", "/")
        assert (await wire.answer()).status == 200
        assert await wire.rest() == b""


async def test_waiting_for_our_own_answer_is_not_idle() -> None:
    async def handler(request: Request) -> Reply:
        await asyncio.sleep(3 * QUICK.shortest_s())
        return Answer(200)

    async with wired(handler, QUICK) as wire:
        wire.request("GET", "/")
        assert (await wire.answer()).status == 200


async def test_a_client_that_does_not_read_is_left() -> None:
    async def handler(request: Request) -> Reply:
        return Answer(200, b"a" * 50_000_000)

    async with serving(handler, QUICK) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(raw, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await eventually(lambda: server.connections_open() == 1)
            await eventually(lambda: server.connections_open() == 0)


async def test_beyond_the_limit_connections_are_closed_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        async with AsyncExitStack() as stack:
            limits = WireLimits(connections=3)
            server = await stack.enter_async_context(serving(hello_user, limits))
            wires = [await stack.enter_async_context(connected(server)) for _ in range(3)]
            for wire in wires:
                wire.request("GET", "/")
                assert (await wire.answer()).status == 200
            for _ in range(5):
                async with connected(server) as surplus:
                    assert await surplus.rest() == b""
            await wires[0].leave()
            assert await _served_again(server.port) == 200
    assert [record.getMessage() for record in caplog.records] == ["too many connections"]


async def test_those_who_say_nothing_give_way_to_newcomers() -> None:
    """As many silent connections as they like: whoever authenticates gets in, and stays."""
    limits = WireLimits(connections=5)
    async with serving(hello_user, limits) as server, connected(server) as first:
        first.request("GET", "/")
        assert (await first.answer()).status == 200
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        try:
            async with connected(server) as late:
                late.request("GET", "/")
                assert (await late.answer()).status == 200
                first.request("GET", "/")
                assert (await first.answer()).status == 200
            await eventually(lambda: server.connections_open() <= limits.connections)
        finally:
            for each in silent:
                each.close()


async def test_a_request_under_way_keeps_its_place() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> Reply:
        request.user = User("me")
        began.set()
        await go_on.wait()
        return Answer(200, b"hello")

    async with serving(slow, WireLimits(connections=2)) as server, connected(server) as wire:
        wire.request("POST", "/")
        await began.wait()
        async with AsyncExitStack() as stack:
            silent = [await stack.enter_async_context(connected(server)) for _ in range(9)]
            # Each took the place of the one before, and not that of the request.
            for each in silent[:-1]:
                assert await each.rest() == b""
            go_on.set()
            assert (await wire.answer()).status == 200


async def _served_again(port: int) -> int:
    """A place becomes free a moment after a client has left."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
            try:
                wire.request("GET", "/")
                return (await wire.answer()).status
            except (asyncio.IncompleteReadError, ConnectionError):
                continue
            finally:
                await wire.leave()


@pytest.mark.parametrize("turns", range(4))
async def test_who_comes_as_the_server_closes_is_hung_up_on(turns: int) -> None:
    """A socket that nobody closes is told of by Python, and fails the test."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(hello, USUAL))
        late = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(9)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.close(grace_s=0.0)
        gc.collect()
    for each in late:
        each.settimeout(PATIENCE_S)
        with each, suppress(ConnectionError):
            assert each.recv(1) == b""


async def test_two_thousand_slow_clients_neither_stop_nor_swell_the_server() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else soft, hard))
    limits = msgspec.structs.replace(QUICK, connections=100)
    try:
        async with serving(hello, limits) as server:
            before = _resident_mib()
            crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(1)]
            try:
                for _ in range(1_999):
                    raw = socket.socket()
                    raw.setblocking(False)
                    crowd.append(raw)
                    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", server.port))
                    raw.send(b"GET / HTTP/1.1\r\nX: ")
                    assert server.connections_open() <= limits.connections
                assert await _served_again(server.port) == 200
                assert _resident_mib() - before < 50
            finally:
                for raw in crowd:
                    raw.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _resident_mib() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() // 2**20
