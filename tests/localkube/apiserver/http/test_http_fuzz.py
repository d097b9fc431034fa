"""Whatever bytes come: no exception gets out, and how they are split makes no difference."""

import asyncio
import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.request import Answer, Reply, Request
from tests.localkube.apiserver.http.memory_wire import answered

LIMITS = WireLimits(body_bytes=64, url_bytes=64, header_bytes=256, headers=6)

PIECES = [
    b"GET ",
    b"POST ",
    b"/a",
    b"/b?c=d",
    b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n",
    b"Host: x\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 99\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
    b"Expect: 100-continue\r\n",
    b"X: " + b"y" * 100 + b"\r\n",
    b"\r\n",
    b"hello",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"\n",
    b"\x00",
    b"\xff",
    b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
]
almost_http = st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join)


async def echo(request: Request) -> Reply:
    return Answer(200, request.method.encode() + request.path.encode() + request.body)


@settings(deadline=None)  # an event loop on a busy machine takes its time
@given(st.one_of(st.binary(max_size=600), almost_http))
@example(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y")
def test_any_bytes_are_answered_or_refused(data: bytes) -> None:
    written = asyncio.run(answered(echo, [data], LIMITS))
    assert written == b"" or written.startswith(b"HTTP/1.1 ")


@settings(deadline=None)  # an event loop on a busy machine takes its time
@given(almost_http, st.lists(st.integers(1, 60), min_size=1))
def test_how_bytes_are_split_makes_no_difference(data: bytes, sizes: list[int]) -> None:
    parts: list[bytes] = []
    rest = data
    while rest:
        size = sizes[len(parts) % len(sizes)]
        parts.append(rest[:size])
        rest = rest[size:]
    whole = asyncio.run(answered(echo, [data], LIMITS))
    split = asyncio.run(answered(echo, parts, LIMITS))
    assert _comparable(split) == _comparable(whole)


def _comparable(written: bytes) -> bytes:
    """Without what differs rightly: audit ids, and whether we had to say "go on"."""
    written = written.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    return re.sub(rb"Audit-Id: [-0-9a-f]{36}", b"", written)
