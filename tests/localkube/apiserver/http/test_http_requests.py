"""Requests in, answers out."""

import asyncio
import logging

import pytest

from localkube.apiserver.request import Answer, Handler, Reply, Request
from localkube.apiserver.status import bad_request
from tests.localkube.apiserver.http.wire_client import connected, serving, wired


async def echo(request: Request) -> Reply:
    return Answer(200, request.body or request.path.encode(), "text/plain")


async def later(request: Request) -> Reply:
    await asyncio.sleep(0)
    return await echo(request)


async def test_a_request_arrives_whole() -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Reply:
        seen.append(request)
        return Answer(201, b"{}")

    async with wired(handler) as wire:
        wire.request("POST", "/api/v1/pods?a=1&a=2&b=%20", "X-One: 1", "x-ONE: 2", body=b"hello")
        answer = await wire.answer()
    assert (answer.status, answer.body) == (201, b"{}")
    [request] = seen
    assert (request.method, request.path, request.body) == ("POST", "/api/v1/pods", b"hello")
    assert request.query == {"a": ["1", "2"], "b": [" "]}
    assert request.headers["x-one"] == "1, 2"
    assert request.headers["host"] == "localhost"


async def test_an_answer_has_the_headers_of_kubernetes() -> None:
    async with wired(echo) as wire:
        wire.request("GET", "/a")
        first = await wire.answer()
        wire.request("GET", "/b")
        second = await wire.answer()
    assert first.header("content-type") == "text/plain"
    assert first.header("cache-control") == "no-cache, private"
    assert first.header("content-length") == "2"
    ids = [first.header("audit-id"), second.header("audit-id")]
    assert len(set(ids)) == 2
    assert all(id and len(id) == 36 and id.count("-") == 4 for id in ids)


async def test_an_answer_may_set_its_own_caching() -> None:
    async def handler(request: Request) -> Reply:
        return Answer(200, b"", headers=(("Cache-Control", "public"), ("ETag", '"x"')))

    async with wired(handler) as wire:
        wire.request("GET", "/")
        answer = await wire.answer()
    assert answer.all("cache-control") == ["public"]
    assert answer.header("etag") == '"x"'


async def test_many_warnings_are_shortened_and_repeated_ones_said_once() -> None:
    async def handler(request: Request) -> Reply:
        request.warnings += [f"{number} {'x' * 5000}" for number in range(500)] * 2
        return Answer(200, b"")

    async with wired(handler) as wire:
        wire.request("GET", "/")
        answer = await wire.answer()
    shown = answer.all("warning")
    assert len(shown) == 16
    assert sum(map(len, shown)) < 4500


async def test_warnings_are_quoted_and_cannot_add_headers() -> None:
    async def handler(request: Request) -> Reply:
        request.warnings.append('unknown field "spec.a\\b"')
        request.warnings.append("two\r\nX-Evil: 1")
        return Answer(200, b"", headers=(("X-Name", "a\r\nX-Evil: 2"),))

    async with wired(handler) as wire:
        wire.request("GET", "/")
        answer = await wire.answer()
    assert answer.all("warning") == [
        '299 - "unknown field \\"spec.a\\\\b\\""',
        '299 - "two  X-Evil: 1"',
    ]
    assert answer.header("x-evil") is None


@pytest.mark.parametrize("handler", [echo, later])
async def test_requests_on_one_connection_are_answered_in_order(handler: Handler) -> None:
    async with wired(handler) as wire:
        for number in range(200):
            wire.request("GET", f"/{number}")
        answers = [await wire.answer() for _ in range(200)]
    assert [answer.body for answer in answers] == [f"/{n}".encode() for n in range(200)]


async def test_a_slow_request_keeps_its_place_in_the_pipeline() -> None:
    go = asyncio.Event()

    async def handler(request: Request) -> Reply:
        if request.path == "/slow":
            await go.wait()
        return await echo(request)

    async with wired(handler) as wire:
        wire.request("GET", "/slow")
        wire.request("GET", "/quick")
        await wire.writer.drain()
        go.set()
        assert [(await wire.answer()).body for _ in range(2)] == [b"/slow", b"/quick"]


async def test_a_request_may_come_byte_by_byte() -> None:
    async with wired(echo) as wire:
        for byte in b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc":
            wire.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await wire.answer()).body == b"abc"


async def test_a_chunked_body_is_put_together() -> None:
    async with wired(echo) as wire:
        wire.request("POST", "/", "Transfer-Encoding: chunked")
        wire.send("3\r\nabc\r\n", "2;x=y\r\nde\r\n", "0\r\nAuthorization: late\r\n\r\n")
        assert (await wire.answer()).body == b"abcde"
        wire.request("GET", "/next")
        assert (await wire.answer()).body == b"/next"


async def test_trailers_are_no_headers() -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Reply:
        seen.append(request)
        return Answer(200)

    async with wired(handler) as wire:
        wire.request("POST", "/", "Transfer-Encoding: chunked")
        wire.send("1\r\na\r\n0\r\nAuthorization: Bearer late\r\n\r\n")
        await wire.answer()
    assert "authorization" not in seen[0].headers


async def test_a_client_that_asks_is_told_to_continue() -> None:
    async with wired(echo) as wire:
        wire.request("POST", "/", "Expect: 100-continue", "Content-Length: 2")
        assert (await wire.answer()).status == 100
        wire.send("ok")
        assert (await wire.answer()).body == b"ok"


async def test_an_unknown_expectation_is_refused() -> None:
    async with wired(echo) as wire:
        wire.request("POST", "/", "Expect: miracles", "Content-Length: 2")
        assert (await wire.answer()).status == 417


async def test_head_gets_no_body_but_its_length() -> None:
    async with wired(echo) as wire:
        wire.request("HEAD", "/four")
        answer = await wire.answer(to_head=True)
        assert answer.header("content-length") == "5"
        wire.request("GET", "/x")
        assert (await wire.answer()).body == b"/x"


async def test_no_content_has_neither_body_nor_length() -> None:
    async def handler(request: Request) -> Reply:
        return Answer(204)

    async with wired(handler) as wire:
        for _ in range(2):
            wire.request("GET", "/")
            answer = await wire.answer()
            assert answer.status == 204
            assert answer.header("content-length") is None
            assert answer.header("content-type") is None


async def test_the_connection_closes_when_the_client_asks_for_it() -> None:
    async with wired(echo) as wire:
        wire.request("GET", "/a", "Connection: close")
        answer = await wire.answer()
        assert answer.header("connection") == "close"
        assert await wire.rest() == b""


async def test_http_1_0_is_answered_once() -> None:
    async with wired(echo) as wire:
        wire.send("GET /a HTTP/1.0\r\n\r\n")
        assert (await wire.answer()).body == b"/a"
        assert await wire.rest() == b""


async def test_a_refusal_is_its_status() -> None:
    async def handler(request: Request) -> Reply:
        raise bad_request("no " + request.path)

    async with wired(handler) as wire:
        wire.request("GET", "/a")
        answer = await wire.answer()
    assert answer.status == 400
    assert b'"message":"no /a"' in answer.body


@pytest.mark.parametrize("waits", [False, True])
async def test_a_broken_handler_gives_500_and_one_log_entry(
    waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(request: Request) -> Reply:
        if waits:
            await asyncio.sleep(0)
        raise RuntimeError("the secret of the house")

    with caplog.at_level(logging.ERROR):
        async with wired(handler) as wire:
            wire.request("GET", "/a")
            answer = await wire.answer()
            assert answer.status == 500
            assert b'"reason":"InternalError"' in answer.body
            assert b"secret" not in answer.body
            wire.request("GET", "/b")
            assert (await wire.answer()).status == 500
    assert [record.getMessage() for record in caplog.records] == ["request failed"] * 2


async def test_a_large_answer_in_pieces_arrives_whole() -> None:
    pieces = [bytes([65 + n % 26]) * 2_000 for n in range(5_000)]

    async def handler(request: Request) -> Reply:
        return Answer(200, pieces if request.path == "/pieces" else b"".join(pieces))

    async with wired(handler) as wire:
        for path in ("/pieces", "/whole"):
            wire.request("GET", path)
            assert (await wire.answer()).body == b"".join(pieces)


async def test_a_small_answer_in_pieces_arrives_whole() -> None:
    async def handler(request: Request) -> Reply:
        return Answer(200, [b'{"items":[', b"1", b",2", b"]}"])

    async with wired(handler) as wire:
        wire.request("GET", "/")
        assert (await wire.answer()).body == b'{"items":[1,2]}'


async def test_connections_do_not_wait_for_one_another() -> None:
    go = asyncio.Event()

    async def handler(request: Request) -> Reply:
        if request.path == "/slow":
            await go.wait()
        return await echo(request)

    async with serving(handler) as server, connected(server) as slow, connected(server) as quick:
        slow.request("GET", "/slow")
        quick.request("GET", "/quick")
        assert (await quick.answer()).body == b"/quick"
        go.set()
        assert (await slow.answer()).body == b"/slow"
