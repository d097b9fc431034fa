"""Clients that mean no good: crowds of slow ones, broken protobuf, upgrades that turn to noise."""

import asyncio
import base64
import json
import os
import random
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.api_child import TOKEN, ApiChild, Nursery, running
from tests.faults.client import CONFIGMAPS, PODS, Cut, connected
from tests.faults.test_bad_input import GROWTH_MB, QUICK_S, ordinary_work, post

CROWD = 10_000
AUTHORIZATION = f"Authorization: Bearer {TOKEN}"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_RECORDED = Path(__file__).parent.parent / "localkube/apiserver/decode/protobuf_bodies.json"
BODIES = [base64.b64decode(pair["protobuf"]) for pair in json.loads(_RECORDED.read_text()).values()]


@pytest.fixture
def child(nursery: Nursery, tmp_path: Path) -> Iterator[ApiChild]:
    with running(nursery, tmp_path / "data") as made:
        asyncio.run(ordinary_work(made))
        before_mb = made.memory_mb()
        yield made
        asyncio.run(ordinary_work(made))
        # A connection costs 70 KB while it shakes hands, and 1,000 are allowed.
        assert made.memory_mb() - before_mb < GROWTH_MB + 70


@contextmanager
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CROWD + 200:
        pytest.skip(f"this user may open {hard} files, and {CROWD} connections need more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def join(crowd: list[socket.socket], port: int, *, size: int) -> None:
    loop = asyncio.get_running_loop()
    for number in range(size):
        raw = socket.socket()
        raw.setblocking(False)
        crowd.append(raw)
        with suppress(ConnectionError):
            await loop.sock_connect(raw, ("127.0.0.1", port))
            # The start of a TLS handshake that never comes, or of a request that is not encrypted.
            raw.send(b"\x16\x03\x01\x02\x00\x01" if number % 2 else b"GET / HTTP/1.1\r\nX: ")


async def test_ten_thousand_slow_clients_neither_stop_nor_swell_the_server(child: ApiChild) -> None:
    crowd: list[socket.socket] = []
    with many_descriptors():
        try:
            async with connected(child) as client:
                # Who has not said yet who he is gives way to others.
                assert await client.get(CONFIGMAPS)
                for _ in range(10):
                    await join(crowd, child.port, size=CROWD // 10)
                    async with asyncio.timeout(QUICK_S):
                        assert await client.get(CONFIGMAPS)
                open_files = len(os.listdir(f"/proc/{child.pid}/fd"))
                assert open_files < 1_200, "as many connections as are allowed, and a few files"
        finally:
            for raw in crowd:
                raw.close()


async def test_broken_protobuf_is_refused_or_read(child: ApiChild) -> None:
    chosen = random.Random(7)
    for number in range(300):
        body = bytearray(BODIES[number % len(BODIES)])
        for _ in range(chosen.randint(1, 8)):
            body[chosen.randrange(4, len(body))] = chosen.randrange(256)
        cut = chosen.randrange(len(body)) if number % 3 == 0 else len(body)
        path = (CONFIGMAPS, PODS)[number % 2] + "?dryRun=All"
        answer = await post(child, path, bytes(body[:cut]), PROTOBUF)
        assert answer.status == 201 or 400 <= answer.status < 500, answer


UPGRADES = {
    "websocket": (
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ),
    "spdy": ("Upgrade: SPDY/3.1", "Connection: Upgrade"),
    "something else": ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings"),
}


@pytest.mark.parametrize("upgrade", UPGRADES)
async def test_noise_after_an_upgrade_ends_that_connection_only(
    child: ApiChild, upgrade: str
) -> None:
    chosen = random.Random(11)
    for subresource in ("exec?command=sh&stdin=true", "attach", "portforward?ports=80", "log"):
        async with connected(child) as client, asyncio.timeout(QUICK_S):
            first = f"GET {PODS}/nobody/{subresource} HTTP/1.1"
            text = "\r\n".join((first, "Host: localhost", AUTHORIZATION, *UPGRADES[upgrade]))
            with suppress(*Cut):
                client.wire.send(text.encode() + b"\r\n\r\n", chosen.randbytes(4096))
                assert (await client.wire.answer()).status in (101, 400, 404, 503)
