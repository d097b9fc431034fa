"""Large requests, again and again, in a real process: what they took, they give back."""

import asyncio
import time
from pathlib import Path

import pytest

from bench.heavy import requests
from bench.heavy.bodies import CONFIGMAPS, CORE, DRY, Heavy, map_body, pod_body
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
# Of the same kinds: what the server reads at their first use, it keeps.
_SMALL = (
    Heavy("POST", f"{CORE}/pods{DRY}", pod_body()),
    Heavy("POST", f"{CONFIGMAPS}{DRY}", map_body(data={"a": "b"})),
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


def _falls_to(child: ApiChild, wanted_mb: float) -> float:
    """The memory once it is no more than that; or after a long time."""
    deadline = time.monotonic() + _PATIENCE_S
    while (found := child.memory_mb()) > wanted_mb and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.timeout(400)
def test_memory_falls_back_to_where_it_was_before(nursery: Nursery, tmp_path: Path) -> None:
    with running(nursery, tmp_path / "data") as child:
        for small in _SMALL:
            assert asyncio.run(_send(child, small)) == 201
        before_mb = child.memory_mb()
        for _ in range(3):
            _send_all(child)
            assert _falls_to(child, before_mb * _ALLOWED) <= before_mb * _ALLOWED


def _send_all(child: ApiChild) -> None:
    for name in _NAMES:
        assert asyncio.run(_send(child, requests()[name]())) < 500
