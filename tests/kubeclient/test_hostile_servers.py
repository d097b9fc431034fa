"""Servers that answer wrongly, slowly, partly or too much: what the caller is told, and that no
answer is taken for that of another request."""

import asyncio
import contextlib
import gzip
from pathlib import Path

import pytest

from kubeclient.client import Kube
from kubeclient.errors import NoAnswer
from kubeclient.https import Https
from kubeclient.resources import PODS
from tests.kubeclient.tls_server import CHUNKED, chunk, plain, says, served, tls_server

POD = b'{"metadata":{}}'
WHOLE = plain(200, POD)
LINE = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\ncontent-length: 15\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\ncontent-length: 15, 15\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(POD),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
        + chunk(POD)
        + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 15\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 15\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\nx: a\r\n folded\r\ncontent-length: 15\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\r\nx\x00: a\r\ncontent-length: 15\r\n\r\n" + POD,
        b"HTTP/1.1 200 OK\ncontent-length: 15\n\n" + POD,
        b"HTTP/1.1 20 OK\r\ncontent-length: 15\r\n\r\n" + POD,
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n" + POD,
        CHUNKED + b"zz\r\n" + POD,
        CHUNKED + b"fffffffffffffffff\r\n" + POD,
        b"HTTP/1.1 000 X\r\ncontent-length: 15\r\n\r\n" + POD,
        b"HTTP/1.1 099 X\r\ncontent-length: 15\r\n\r\n" + POD,
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00\x01\x02\x03",
        POD,
    ],
)
async def test_what_is_not_http_is_no_answer_and_is_not_asked_again(
    tmp_path: Path, said: bytes
) -> None:
    answer, asked = says(said)
    async with served(tmp_path, answer) as (kube, _):
        with pytest.raises(NoAnswer):
            await kube.get(PODS, "a", "default")
    assert len(asked) == 1


async def test_a_redirect_is_not_taken_for_success(tmp_path: Path) -> None:
    """A proxy that wants people to log in may send one, even with JSON in it. Credentials must not
    follow to another host."""
    for status in (301, 302, 303, 304, 307, 308):
        answer, asked = says(plain(status, POD, "location: https://login.test/"))
        async with served(tmp_path, answer) as (kube, _):
            with pytest.raises(NoAnswer, match=f"HTTP {status}"):
                await kube.create(PODS, {"metadata": {"name": "a", "namespace": "default"}})
            with pytest.raises(NoAnswer, match=f"HTTP {status}"):
                await anext(kube.watch(PODS))
        assert len(asked) == 2


@pytest.mark.parametrize("body", [b"[]", b"null", b'"Pod"', b"1"])
async def test_json_that_is_no_object_is_no_answer(tmp_path: Path, body: bytes) -> None:
    async with served(tmp_path, says(plain(200, body))[0]) as (kube, _):
        with pytest.raises(NoAnswer, match="no JSON object"):
            await kube.get(PODS, "a", "default")


@pytest.mark.parametrize("whole", [WHOLE, CHUNKED + chunk(POD) + b"0\r\n\r\n"])
async def test_a_server_may_stop_after_any_byte(tmp_path: Path, whole: bytes) -> None:
    """After none: it may not have read the request, so GET is sent once more."""
    asked: list[int] = []

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        end = int(line.split()[1].rpartition(b"/")[2])
        asked.append(end)
        writer.write(whole[:end])
        await writer.drain()
        writer.close()

    async with served(tmp_path, answer) as (kube, _):
        for end in range(len(whole)):
            with pytest.raises(NoAnswer):
                await kube.get(PODS, str(end), "default")
    assert asked == [0, *range(len(whole))]


async def test_an_answer_may_come_byte_by_byte(tmp_path: Path) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        for number in range(len(WHOLE)):
            writer.write(WHOLE[number : number + 1])
            await writer.drain()
            await asyncio.sleep(0)

    async with served(tmp_path, answer) as (kube, _):
        assert await kube.get(PODS, "a", "default") == {"metadata": {}}


ENDLESS = [
    (LINE, b"x: y\r\n" * 1000),
    (LINE + b"x: ", b"y" * 5000),
    (b"HTTP/1.1 200 ", b"OK" * 5000),
    (CHUNKED + b"1;", b"x=y;" * 1000),
    (CHUNKED + b"0\r\n", b"x: y\r\n" * 1000),
    (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
]


@pytest.mark.parametrize(("first", "again"), ENDLESS)
async def test_headers_without_end_are_no_answer(
    tmp_path: Path, first: bytes, again: bytes
) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(again)
                await writer.drain()

    async with served(tmp_path, answer) as (kube, _):
        with pytest.raises(NoAnswer, match="headers of more than"):
            await kube.get(PODS, "a", "default")


async def test_a_body_without_end_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubeclient.http1.MAX_ANSWER_BYTES", 10**6)
    bomb = gzip.compress(b"0" * 10**8)
    for said in (
        CHUNKED + chunk(b"0" * 600_000) * 2,
        plain(200, bomb, "content-encoding: gzip"),
        LINE + b"\r\n" + b"0" * 1_200_000,
    ):
        answer, _ = says(said, then_close=False)
        async with served(tmp_path, answer) as (kube, _):
            with pytest.raises(NoAnswer, match="more than 1000000 bytes"):
                await kube.get(PODS, "a", "default")


async def test_an_answer_may_be_compressed_and_must_be_whole(tmp_path: Path) -> None:
    packed = gzip.compress(POD)
    answer, _ = says(plain(200, packed, "content-encoding: gzip"))
    async with served(tmp_path, answer) as (kube, _):
        assert await kube.get(PODS, "a", "default") == {"metadata": {}}
    for wrong in (packed[:-1], packed + b"more"):
        answer, _ = says(plain(200, wrong, "content-encoding: gzip"))
        async with served(tmp_path, answer) as (kube, _):
            with pytest.raises(NoAnswer, match="gzip"):
                await kube.get(PODS, "a", "default")


async def test_interim_answers_are_passed_over(tmp_path: Path) -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\ncontent-length: 7\r\n\r\n"
    answer, _ = says(early + WHOLE)
    async with served(tmp_path, answer) as (kube, _):
        assert await kube.get(PODS, "a", "default") == {"metadata": {}}


async def test_a_body_may_end_with_the_connection(tmp_path: Path) -> None:
    answer, _ = says(b"HTTP/1.0 200 OK\r\n\r\n" + POD)
    async with served(tmp_path, answer) as (kube, _):
        assert await kube.get(PODS, "a", "default") == {"metadata": {}}


@pytest.mark.parametrize("more", [WHOLE, b"garbage", b"HTTP/1.1 404 X\r\n"])
async def test_what_nobody_asked_for_is_the_answer_to_nothing(tmp_path: Path, more: bytes) -> None:
    other = plain(200, b'{"metadata": {"name": "b"}}')
    answer, asked = says(WHOLE + more, other, then_close=False)
    async with served(tmp_path, answer) as (kube, _):
        assert await kube.get(PODS, "a", "default") == {"metadata": {}}
        assert await kube.get(PODS, "b", "default") == {"metadata": {"name": "b"}}
    assert len(asked) == 2


async def test_what_comes_later_than_its_answer_is_the_answer_to_nothing(tmp_path: Path) -> None:
    late, closed = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(WHOLE)
        await late.wait()
        writer.write(plain(404, b"late"))
        with contextlib.suppress(ConnectionError):
            await reader.read()
        closed.set()

    async with tls_server(tmp_path, says(WHOLE)[0], serve=serve) as access:
        transport = Https(access, "test")
        for _ in range(2):
            late.clear()
            closed.clear()
            assert await Kube(transport).get(PODS, "a", "default") == {"metadata": {}}
            late.set()
            await asyncio.wait_for(closed.wait(), 10)
        await transport.close()


async def test_a_request_that_was_cancelled_leaves_its_answer_to_nobody(tmp_path: Path) -> None:
    asked, answers = asyncio.Event(), asyncio.Event()

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        if b"/slow" in line:
            asked.set()
            await answers.wait()
            writer.write(plain(200, b'{"metadata": {"name": "slow"}}'))
        else:
            writer.write(WHOLE)

    async with served(tmp_path, answer) as (kube, _):
        assert await kube.get(PODS, "a", "default") == {"metadata": {}}
        slow = asyncio.create_task(kube.get(PODS, "slow", "default"))
        await asked.wait()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        answers.set()
        for _ in range(5):
            assert await kube.get(PODS, "b", "default") == {"metadata": {}}
