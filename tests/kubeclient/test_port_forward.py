"""GET through port-forward: whatever the pod, the kubelet or the API server answer."""

import asyncio
import contextlib
from asyncio import sslproto
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from kubeclient.access import Access, trust
from kubeclient.client import Kube
from kubeclient.errors import NoAnswer, Refused
from kubeclient.https import Https
from kubeclient.port_forward import PROTOCOL, named_port, page_of_pod
from localkube.apiserver.security.certificates import ensure, server_context
from tests.kubeclient.api import api

PORTS = (b"\x00\xe5\x24", b"\x01\xe5\x24")  # what a kubelet says first, of port 9445
OK = b"\x00HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"


@contextlib.asynccontextmanager
async def forwarding(directory: Path, *messages: bytes, status: int = 0) -> AsyncIterator[Kube]:
    """An API server whose kubelet sends these messages after a request, and then closes."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.path == "/api/v1/namespaces/ns/pods/p/portforward"
        assert request.query == {"ports": "9445"}
        if status:
            return web.json_response({"message": "no"}, status=status)
        socket = web.WebSocketResponse(protocols=(PROTOCOL,))
        await socket.prepare(request)
        for message in PORTS:
            await socket.send_bytes(message)
        asked = await socket.receive_bytes()
        assert asked.startswith(b"\x00GET /readings HTTP/1.0\r\n")
        for message in messages:
            await socket.send_bytes(message)
        await socket.close()
        return socket

    app = web.Application()
    app.add_routes([web.get("/{path:.*}", answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    made = ensure(directory)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(made))
    await site.start()
    access = Access(f"https://127.0.0.1:{runner.addresses[0][1]}", trust(made.ca_pem.decode()))
    transport = Https(access, "test")
    try:
        yield Kube(transport)
    finally:
        await transport.close()
        await runner.cleanup()


async def get(kube: Kube) -> tuple[int, bytes]:
    return await page_of_pod(kube, "ns", "p", 9445, "/readings", most_bytes=1000)


@pytest.mark.parametrize(
    ("messages", "answer"),
    [
        ([OK + b"hello"], (200, b"hello")),
        ([OK, b"\x00he", b"\x00", b"\x00llo"], (200, b"hello")),
        ([OK[:9], b"\x00" + OK[9:] + b"hello, and more"], (200, b"hello")),
        ([b"\x00HTTP/1.1 503 No\r\nx: y\r\n\r\nno", b"\x00 driver"], (503, b"no driver")),
        ([b"\x00HTTP/1.1 204 Empty\r\n\r\n"], (204, b"")),
    ],
)
async def test_the_page_is_what_the_pod_sent(
    tmp_path: Path, messages: list[bytes], answer: tuple[int, bytes]
) -> None:
    async with forwarding(tmp_path, *messages) as kube:
        assert await get(kube) == answer


async def test_a_connection_that_is_closed_already_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def abort(transport: asyncio.Transport) -> None:  # what Python 3.11.2 does, of Debian 12
        transport.close()
        transport.close()
        raise AttributeError("'NoneType' object has no attribute '_abort'")

    monkeypatch.setattr(sslproto._SSLProtocolTransport, "abort", abort)
    async with forwarding(tmp_path, OK + b"hello") as kube:
        assert await get(kube) == (200, b"hello")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "it closed the connection without an answer"),
        ([b"\x00SSH-2.0-OpenSSH_9\r\n\r\n"], "what answers is no HTTP server"),
        ([b"\x00" + b"x" * 70_000, b"\x00y"], "what answers is no HTTP server"),
        ([OK + b"hel"], "ended within the answer"),
        ([OK.replace(b"5", b"5000")], "more than 1000 bytes"),
        ([b"\x00HTTP/1.0 200 OK\r\n\r\n", b"\x00" + b"x" * 2000], "more than 1000 bytes"),
        ([b"\x01connection refused"], "port 9445 of pod ns/p: connection refused"),
    ],
)
async def test_what_is_no_page_is_no_answer(
    tmp_path: Path, messages: list[bytes], said: str
) -> None:
    async with forwarding(tmp_path, *messages) as kube:
        with pytest.raises(NoAnswer, match=said):
            await get(kube)


async def test_the_kubelet_is_heard_when_it_has_closed_before_we_ask(tmp_path: Path) -> None:
    class Closed:
        def __init__(self) -> None:
            self.messages = [*PORTS, b"\x01connection refused"]

        async def send(self, message: bytes) -> None:
            raise NoAnswer("closed")

        async def receive(self) -> bytes | None:
            return self.messages.pop(0) if self.messages else None

    class Client(Kube):
        @contextlib.asynccontextmanager
        async def websocket(self, *_: object, **__: object) -> AsyncIterator[Closed]:
            yield Closed()

    async with api(tmp_path) as kube:
        with pytest.raises(NoAnswer, match="port 9445 of pod ns/p: connection refused"):
            await get(Client(kube._transport))


async def test_a_server_that_refuses_is_named_with_its_code(tmp_path: Path) -> None:
    async with forwarding(tmp_path, status=403) as kube:
        with pytest.raises(Refused) as refused:
            await get(kube)
    assert refused.value.code == 403


async def test_a_client_inside_the_server_has_no_port_forward(tmp_path: Path) -> None:
    async with api(tmp_path) as kube:
        with pytest.raises(NoAnswer, match="has no WebSockets"):
            await get(kube)


def test_a_port_is_found_by_its_name_in_any_container() -> None:
    ports = [{"containerPort": 80}, {"name": "readings", "containerPort": 9445}]
    pod = {"spec": {"containers": [{"name": "a"}, {"name": "b", "ports": ports}]}}
    assert named_port(pod, "readings") == 9445
    assert named_port(pod, "history") is None
