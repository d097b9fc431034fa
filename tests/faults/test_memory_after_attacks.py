"""What a large request took, the server gives back: a real process, resident memory."""

import asyncio
import time
from pathlib import Path

from bench.heavy import Heavy, requests
from tests.faults.api_child import ApiChild, Nursery, running
from tests.faults.client import connected
from tests.faults.test_bad_input import AUTHORIZATION

_NAMES = (
    "pod of 30,000 containers",
    "pod of 48,000 empty containers",
    "pod in protobuf, named containers",
    "3 MB of repeated objects",
    "99,000 unknown fields, strict",
    "map of 99,000 keys",
)
_ALLOWED = 1.10
_PATIENCE_S = 30.0


async def _send(child: ApiChild, heavy: Heavy) -> int:
    lines = (
        f"{heavy.method} {heavy.path} HTTP/1.1",
        "Host: localhost",
        AUTHORIZATION,
        f"Content-Type: {heavy.media}",
        f"Content-Length: {len(heavy.body)}",
    )
    async with connected(child) as client:
        client.wire.send("\r\n".join(lines).encode(), b"\r\n\r\n", heavy.body)
        return (await client.wire.answer()).status


def _falls_to(child: ApiChild, wanted_mb: float, patience_s: float = _PATIENCE_S) -> float:
    """The memory once it is no more than that; or after a long time."""
    deadline = time.monotonic() + patience_s
    while (found := child.memory_mb()) > wanted_mb and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def test_memory_is_given_back_after_large_requests(nursery: Nursery, tmp_path: Path) -> None:
    with running(nursery, tmp_path / "data") as child:
        # Code and data that are loaded when they are first needed stay, as they should.
        for name in _NAMES:
            assert asyncio.run(_send(child, requests()[name]())) < 500
        before_mb = _falls_to(child, 0.0, patience_s=2.0)
        for name in _NAMES:
            assert asyncio.run(_send(child, requests()[name]())) < 500
        assert _falls_to(child, before_mb * _ALLOWED) <= before_mb * _ALLOWED
