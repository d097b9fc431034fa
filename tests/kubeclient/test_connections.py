"""Connections that are used again, streams, and what a request may contain."""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import pytest

from kubeclient.access import Access, trust
from kubeclient.client import Kube
from kubeclient.dialing import route_of
from kubeclient.errors import NoAnswer, NotFound, Refused
from kubeclient.http1 import Connection
from kubeclient.https import Https
from kubeclient.resources import LEASES, PODS
from tests.kubeclient.tls_server import CHUNKED, Answer, chunk, plain, says, served, tls_server

POD = b'{"metadata":{}}'
WHOLE = plain(200, POD)
LINE = b"HTTP/1.1 200 OK\r\n"


def closing_at_the_second() -> tuple[Answer, list[bytes]]:
    """Every connection is closed when its second request has come, without an answer."""
    asked: list[bytes] = []
    seen: set[asyncio.StreamWriter] = set()

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(line)
        if writer in seen:
            writer.transport.abort()
            return
        seen.add(writer)
        writer.write(WHOLE)

    return answer, asked


LEASE = {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}


async def test_reads_and_repeatable_writes_are_sent_again_on_a_new_connection(
    tmp_path: Path,
) -> None:
    answer, asked = closing_at_the_second()
    async with served(tmp_path, answer) as (kube, _):
        await kube.get(PODS, "a", "default")
        await kube.get(PODS, "b", "default")
        await kube.update(LEASES, LEASE)
        await kube.delete(PODS, "a", "default")
    assert [line.split()[0] for line in asked] == [b"GET"] * 3 + [b"PUT"] * 2 + [b"DELETE"] * 2


async def test_a_binding_or_a_patch_is_never_sent_twice(tmp_path: Path) -> None:
    answer, asked = closing_at_the_second()
    async with served(tmp_path, answer) as (kube, transport):
        for method in ("POST", "PATCH"):
            await kube.get(PODS, "a", "default")
            before = len(asked)
            with pytest.raises(NoAnswer, match="ended the connection without an answer"):
                await transport.call(method, "/", query={}, headers={}, body=b"{}")
            assert len(asked) == before + 1


async def test_a_write_on_a_new_connection_is_never_sent_twice(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(line)
        writer.transport.abort()

    async with served(tmp_path, answer) as (_, transport):
        for method in ("POST", "PATCH", "PUT", "DELETE"):
            with pytest.raises(NoAnswer):
                await transport.call(method, "/", query={}, headers={}, body=b"{}")
    assert len(asked) == 4


async def test_a_connection_that_the_server_ends_is_not_used_again(tmp_path: Path) -> None:
    for head in (b"HTTP/1.1 200 OK\r\nconnection: close\r\n", b"HTTP/1.0 200 OK\r\n"):
        writers: set[asyncio.StreamWriter] = set()

        async def answer(
            _: bytes,
            writer: asyncio.StreamWriter,
            head: bytes = head,
            writers: set[asyncio.StreamWriter] = writers,
        ) -> None:
            writers.add(writer)
            writer.write(head + b"content-length: 15\r\n\r\n" + POD)

        async with served(tmp_path, answer) as (kube, _):
            for _ in range(3):
                await kube.create(PODS, {"metadata": {"name": "a", "namespace": "default"}})
        assert len(writers) == 3


async def test_an_answer_before_the_end_of_the_request_counts(tmp_path: Path) -> None:
    """As a server gives it that finds a request too large."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(plain(413, b"too large", "connection: close"))
        await writer.drain()

    async with tls_server(tmp_path, says(WHOLE)[0], serve=serve) as access:
        transport = Https(access, "test")
        pod = {"metadata": {"name": "a", "namespace": "default"}, "x": "y" * 10**7}
        with pytest.raises(Refused, match="too large"):
            await Kube(transport).create(PODS, pod)
        await transport.close()


# -- streams -------------------------------------------------------------------------------------


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def write(self, data: object) -> None: ...

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")


async def test_of_a_stream_that_nobody_reads_little_is_kept() -> None:
    connection, transport, part = Connection(), _Transport(), b"x" * 2**20
    connection.connection_made(transport)
    stream = connection.ask(b"", b"", is_stream=True)
    connection.data_received(CHUNKED + chunk(part) + chunk(part))
    assert transport.calls == []
    connection.data_received(chunk(part))
    assert transport.calls == ["pause"]
    assert await stream.next() == part * 3
    assert transport.calls == ["pause", "resume"]


async def test_a_stream_that_is_left_closes_its_connection(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + chunk(b"{}\n"))
        with contextlib.suppress(ConnectionError):
            await reader.read()
        closed.set()

    async with tls_server(tmp_path, says(WHOLE)[0], serve=serve) as access:
        transport = Https(access, "test")
        stream = Kube(transport).watch(PODS)
        assert await anext(stream) == b"{}\n"
        await stream.aclose()
        await asyncio.wait_for(closed.wait(), 10)
        await transport.close()


async def test_a_stream_that_is_refused_says_why(tmp_path: Path) -> None:
    answer, _ = says(plain(404, b"no such pod"), then_close=False)
    async with served(tmp_path, answer) as (kube, _):
        with pytest.raises(NotFound, match="no such pod"):
            await anext(kube.logs("default", "a", {}))


async def test_a_silent_stream_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubeclient.https._WATCH_GRACE_S", 0.05)
    for said in (b"", LINE, CHUNKED):
        answer, _ = says(said, then_close=False)
        async with served(tmp_path, answer) as (kube, _):
            with pytest.raises(NoAnswer, match="no answer in time"):
                await anext(kube.watch(PODS, query={"timeoutSeconds": "0"}))


async def test_a_client_that_is_closed_ends_its_requests(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        asked.set()

    async with served(tmp_path, answer) as (kube, transport):
        waiting = asyncio.create_task(
            kube.create(PODS, {"metadata": {"name": "a", "namespace": "default"}})
        )
        await asked.wait()
        await transport.close()
        with pytest.raises(NoAnswer):
            await waiting


# -- requests ------------------------------------------------------------------------------------


async def test_a_value_cannot_add_a_header_or_a_request(tmp_path: Path) -> None:
    answer, asked = says(WHOLE, then_close=False)
    async with served(tmp_path, answer) as (kube, transport):
        with pytest.raises(NoAnswer, match="more than one line"):
            await transport.call("GET", "/", query={}, headers={"accept": "a\r\nx: y"}, body=b"")
        await kube.page("/a b\r\nx: y#z")
        await transport.call("GET", "/", query={"a": "1\r\n&x"}, headers={}, body=b"")
    assert asked[0] == b"GET /a%20b%0D%0Ax:%20y%23z HTTP/1.1"
    assert asked[1] == b"GET /?a=1%0D%0A%26x HTTP/1.1"


async def test_all_addresses_of_a_host_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, _ = says(WHOLE)
    async with tls_server(tmp_path, answer) as access:
        port = int(access.url.rpartition(":")[2])

        async def addresses(*_: Any, **__: Any) -> list[Any]:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, ("127.0.0.1", 1)), (*kind, ("127.0.0.1", port))]

        monkeypatch.setattr("kubeclient.dialing._addresses", addresses)
        named = Access(f"https://api.test:{port}", access.tls, server_name="127.0.0.1")
        transport = Https(named, "test")
        assert await Kube(transport).get(PODS, "a", "default") == {"metadata": {}}
        await transport.close()


@pytest.mark.parametrize(
    ("url", "authority", "host"),
    [
        ("https://api", "api:443", "api"),
        ("https://api:443", "api:443", "api"),
        ("https://api:80", "api:80", "api:80"),
        ("http://api:80", "api:80", "api"),
        ("https://[fd00::1]/k8s", "[fd00::1]:443", "[fd00::1]"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", "[fd00::1]:6443"),
    ],
)
def test_a_server_is_called_by_its_name(url: str, authority: str, host: str) -> None:
    """Without the usual port: many who choose a server by this name do not take it off."""
    server = route_of(Access(url, trust())).server
    assert (server.authority, server.host_header) == (authority, host)


async def test_a_request_may_be_given_up_at_any_moment(tmp_path: Path) -> None:
    """The next one is opened with the same number of a file, and is not mixed up with it."""
    async with served(tmp_path, says(WHOLE)[0]) as (kube, _):
        for turns in range(40):
            given_up = asyncio.create_task(kube.get(PODS, "a", "default"))
            for _ in range(turns):
                await asyncio.sleep(0)
            given_up.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await given_up
            assert await kube.get(PODS, "a", "default") == {"metadata": {}}
