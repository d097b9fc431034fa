"""HTTPS: failures of the server and of the connection, and which error the caller gets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from kubeclient.access import Access, trust
from kubeclient.client import Kube
from kubeclient.errors import Expired, NoAnswer, NotFound, Refused, TooMany
from kubeclient.https import Https, connected
from kubeclient.mirror import Mirror
from kubeclient.resources import PODS
from tests.kubeclient.tls_server import CHUNKED, Answer, chunk, plain, tls_server

LIST = json.dumps({"metadata": {"resourceVersion": "5"}, "items": []}).encode()


@contextlib.asynccontextmanager
async def kube(directory: Path, answer: Answer, limit_s: float = 5.0) -> AsyncIterator[Kube]:
    async with tls_server(directory, answer) as access:
        transport = Https(access, "test", limit_s=limit_s)
        try:
            yield Kube(transport)
        finally:
            await transport.close()


async def test_one_connection_serves_many_calls(tmp_path: Path) -> None:
    writers = set()

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        writer.write(plain(200, b'{"metadata":{}}'))

    async with kube(tmp_path, answer) as client:
        for _ in range(5):
            assert await client.get(PODS, "a", "default") == {"metadata": {}}
    assert len(writers) == 1


async def test_a_server_with_another_ca_is_refused(tmp_path: Path) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("a request came through")

    async with tls_server(tmp_path, answer) as access:
        transport = Https(Access(access.url, trust()), "test")
        with pytest.raises(NoAnswer, match="self-signed certificate"):
            await Kube(transport).get(PODS, "a", "default")
        await transport.close()


async def test_a_connection_that_ends_before_the_answer_is_no_answer(tmp_path: Path) -> None:
    asked = []

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(line)
        writer.transport.abort()

    async with kube(tmp_path, answer) as client:
        with pytest.raises(NoAnswer):
            await client.create(PODS, {"metadata": {"name": "a", "namespace": "default"}})
    assert len(asked) == 1  # a write that may have happened is not sent again


async def test_an_answer_that_is_too_slow_is_no_answer(tmp_path: Path) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")

    async with kube(tmp_path, answer, limit_s=0.05) as client:
        with pytest.raises(NoAnswer, match="no answer in time"):
            await client.get(PODS, "a", "default")


async def test_a_refused_connection_is_no_answer(tmp_path: Path) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None: ...

    async with tls_server(tmp_path, answer) as access:
        pass
    transport = Https(access, "test")
    with pytest.raises(NoAnswer, match=r"nothing answers at 127.0.0.1:\d+ \(Connection refused\)"):
        await Kube(transport).get(PODS, "a", "default")
    await transport.close()


async def test_an_address_that_is_no_url_is_named() -> None:
    transport = Https(Access("nonsense", trust()), "test")
    with pytest.raises(NoAnswer, match=r'wanted a server like https://HOST:PORT .* "nonsense"'):
        await Kube(transport).get(PODS, "a", "default")
    await transport.close()


async def test_retry_after_is_obeyed(tmp_path: Path) -> None:
    busy = [plain(429, b"later", "retry-after: 0"), plain(503, b"later", "retry-after: 0")]

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(busy.pop(0) if busy else plain(200, b'{"metadata":{}}'))

    async with kube(tmp_path, answer) as client:
        assert await client.get(PODS, "a", "default") == {"metadata": {}}


async def test_a_wait_beyond_the_time_limit_is_a_refusal_at_once(tmp_path: Path) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(429, b"Too many requests", "retry-after: 60"))

    async with kube(tmp_path, answer) as client:
        with pytest.raises(TooMany, match="Too many requests"):
            await client.get(PODS, "a", "default")


@pytest.mark.parametrize(
    ("status", "body", "wanted"),
    [
        (404, b"no such page", NotFound),
        (410, b'{"reason": "Expired", "code": 410, "message": "too old"}', Expired),
        (500, b"<html>", Refused),
    ],
)
async def test_every_error_status_has_its_exception(
    tmp_path: Path, status: int, body: bytes, wanted: type[Refused]
) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(status, body))

    async with kube(tmp_path, answer) as client:
        with pytest.raises(wanted) as refused:
            await client.get(PODS, "a", "default")
    assert refused.value.code == status


async def test_an_answer_that_is_not_json_is_no_answer(tmp_path: Path) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(200, b"<html>Sign in</html>"))

    async with kube(tmp_path, answer) as client:
        with pytest.raises(NoAnswer, match="not JSON"):
            await client.get(PODS, "a", "default")


@pytest.mark.parametrize("body", [b'{"hello": 1}', b"{}", b'{"metadata": 1}'])
async def test_json_of_another_server_is_no_answer(tmp_path: Path, body: bytes) -> None:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(200, body))

    async with kube(tmp_path, answer) as client:
        with pytest.raises(NoAnswer, match="is the server in the kubeconfig an API server"):
            await client.list(PODS)
        with pytest.raises(NoAnswer, match="is the server in the kubeconfig an API server"):
            await client.get(PODS, "a", "default")


async def test_a_server_without_tls_is_not_taken_for_a_wrong_certificate() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(2**16)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    await _refused_tls(answer, "does not speak TLS")


async def test_a_server_that_hangs_up_before_tls_is_named_with_a_cause() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    await _refused_tls(answer, r"127.0.0.1:\d+ \((it hung up|Connection reset by peer)\)")


async def _refused_tls(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], words: str
) -> None:
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connected(Access(f"https://127.0.0.1:{port}", trust()), "test") as client:
            with pytest.raises(NoAnswer, match=words):
                await client.get(PODS, "a", "default")


async def test_a_watch_that_is_cut_in_the_middle_of_an_event_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubeclient.mirror._PAUSE_AFTER_FAILURE_S", 0.0)
    asked: list[str] = []
    at_end = asyncio.Event()

    def event(name: str, version: int) -> bytes:
        metadata = {"name": name, "namespace": "default", "resourceVersion": str(version)}
        return json.dumps({"type": "ADDED", "object": {"metadata": metadata}}).encode() + b"\n"

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(line.decode().split()[1])
        match len(asked):
            case 1:
                writer.write(plain(200, LIST))
            case 2:  # aborted inside a chunk
                writer.write(CHUNKED + chunk(event("a", 6)) + chunk(event("b", 7))[:20])
                await writer.drain()
                writer.close()
            case 3:  # ended cleanly, but in the middle of an event
                writer.write(CHUNKED + chunk(event("b", 7) + event("c", 8)[:9]) + b"0\r\n\r\n")
            case 4:
                gone = b'{"reason": "Expired", "code": 410, "message": "too old"}'
                writer.write(plain(410, gone))
            case 5:
                writer.write(plain(200, LIST))
            case _:
                writer.write(CHUNKED)
                at_end.set()

    async with kube(tmp_path, answer) as client:
        mirror = Mirror(client, PODS)
        seen: list[str] = []
        mirror.on_change(
            lambda old, new: seen.append(
                f"+{new['metadata']['name']}" if new else f"-{(old or {})['metadata']['name']}"
            )
        )
        task = asyncio.create_task(mirror.run())
        await asyncio.wait_for(at_end.wait(), 10)
        task.cancel()
    versions = [line.split("resourceVersion=")[1][0] for line in asked if "watch" in line]
    assert versions == ["5", "6", "7", "5"]
    assert seen == ["+a", "+b", "-a", "-b"]
