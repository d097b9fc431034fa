"""Proxies: which one is meant, and the way through it."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kubeclient.access import Access
from kubeclient.client import Kube
from kubeclient.errors import NoAnswer
from kubeclient.https import Https
from kubeclient.proxies import environment_proxy
from kubeclient.resources import PODS
from localkube.apiserver.security.certificates import ensure, server_context
from tests.kubeclient.tls_server import plain, tls_server

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "environ", "wanted"),
    [
        ("https://api:6443", {}, ""),
        ("https://api:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api:6443", {"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ("https://api:6443", {"https_proxy": "", "HTTPS_PROXY": PROXY}, ""),
        ("https://api:6443", {"HTTP_PROXY": PROXY}, ""),
        ("http://api:8080", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://api:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        ("https://api:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "x, API"}, ""),
        ("https://api.corp:6443", {"HTTPS_PROXY": PROXY, "no_proxy": ".corp"}, ""),
        ("https://api.corp:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "corp"}, ""),
        ("https://api.corp:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "*.corp"}, ""),
        ("https://apicorp:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "corp"}, PROXY),
        ("https://apicorp:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "*.corp"}, PROXY),
        ("https://api:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "api:6443"}, ""),
        ("https://api:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "api:443"}, PROXY),
        ("https://api", {"HTTPS_PROXY": PROXY, "no_proxy": "api:443"}, ""),
        ("http://api", {"HTTP_PROXY": PROXY, "no_proxy": "api:443"}, PROXY),
        ("https://10.96.0.1", {"HTTPS_PROXY": PROXY, "no_proxy": "10.96.0.0/12"}, ""),
        ("https://10.1.0.1", {"HTTPS_PROXY": PROXY, "no_proxy": "10.96.0.0/12"}, PROXY),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "fd00::/8"}, ""),
        ("https://api:6443", {"HTTPS_PROXY": PROXY, "no_proxy": "10.0.0.0/8,,/,."}, PROXY),
        ("https://api:6443", {"HTTPS_PROXY": "https://proxy"}, ""),
    ],
)
def test_the_environment_names_a_proxy(url: str, environ: dict[str, str], wanted: str) -> None:
    assert environment_proxy(url, environ) == wanted


@contextlib.asynccontextmanager
async def proxy(
    asked: list[bytes], answer: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Its port. `answer`: instead of the connection that is asked for."""
    tasks: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            asked.append(head)
            writer.write(answer or b"HTTP/1.1 200 Connection established\r\n\r\n")
            if answer:
                return
            host, port = head.split()[1].rsplit(b":", 1)
            inner, outer = await asyncio.open_connection(host.decode(), int(port))
            writers.append(outer)
            tasks.append(asyncio.create_task(_copy(reader, outer)))
            tasks.append(asyncio.create_task(_copy(inner, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
        writer.close()


async def _pod(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(plain(200, b'{"metadata":{}}'))


async def _asked(access: Access) -> None:
    transport = Https(access, "test")
    try:
        for _ in range(2):
            assert await Kube(transport).get(PODS, "a", "default") == {"metadata": {}}
    finally:
        await transport.close()


def test_requests_go_through_a_tunnel_with_the_user_of_the_proxy(tmp_path: Path) -> None:
    async def work() -> None:
        asked: list[bytes] = []
        async with tls_server(tmp_path, _pod) as access, proxy(asked) as port:
            await _asked(replace(access, proxy=f"http://u:p%20w@127.0.0.1:{port}"))
        [head] = asked
        assert head.startswith(b"CONNECT " + access.url.removeprefix("https://").encode() + b" ")
        assert b"proxy-authorization: Basic dTpwIHc=\r\n" in head

    _on_both_loops(work)


def test_a_proxy_may_speak_tls_itself(tmp_path: Path) -> None:
    async def work() -> None:
        asked: list[bytes] = []
        tls = server_context(ensure(tmp_path))
        async with tls_server(tmp_path, _pod) as access, proxy(asked, tls=tls) as port:
            await _asked(replace(access, proxy=f"https://127.0.0.1:{port}"))
        assert len(asked) == 1

    _on_both_loops(work)


def _on_both_loops(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Commands run on asyncio's, programs on uvloop."""
    asyncio.run(work())
    uvloop.run(work())


async def test_a_server_without_tls_is_asked_through_the_proxy_itself() -> None:
    asked: list[bytes] = []
    async with proxy(asked, plain(200, b'{"metadata":{}}', "connection: close")) as port:
        access = Access(
            "http://api:8080", ssl.create_default_context(), proxy=f"http://u:p@127.0.0.1:{port}"
        )
        await _asked(access)
    assert asked[0].startswith(b"GET http://api:8080/api/v1/namespaces/default/pods/a HTTP/1.1\r\n")
    assert b"\r\nproxy-authorization: Basic dTpw\r\n" in asked[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication"),
        (plain(403, b"<h1>Denied</h1>"), "403 X"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "no answer"),
        (b"garbage\r\n\r\n", "no answer"),
        (b"x" * 100_000, "no answer"),
    ],
)
async def test_a_proxy_that_refuses_is_named(tmp_path: Path, answer: bytes, words: str) -> None:
    async with tls_server(tmp_path, _pod) as access, proxy([], answer) as port:
        with pytest.raises(NoAnswer, match=rf"the proxy 127.0.0.1:{port} refuses .*{words}"):
            await _asked(replace(access, proxy=f"http://127.0.0.1:{port}"))


@pytest.mark.parametrize("url", ["nonsense", "socks5://127.0.0.1:1", "http://a:b:c"])
async def test_a_proxy_that_is_no_url_is_named(url: str) -> None:
    access = Access("https://api:1", ssl.create_default_context(), proxy=url)
    with pytest.raises(NoAnswer, match=r"wanted a proxy like http://HOST:PORT.*proxy-url"):
        await _asked(access)
