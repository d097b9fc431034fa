"""Large requests, again and again, in a real process: what they took, they give back."""

import asyncio
import time
from pathlib import Path

import pytest

from bench.heavy import requests
from bench.heavy.bodies import (
    CONFIGMAPS,
    CORE,
    CRDS,
    DRY,
    MERGE,
    Heavy,
    crd_body,
    map_body,
    pod_body,
    wide_schema,
)
from localkube.apiserver.store.watch_log import CALM_BYTES, FRESH_S
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


def _falls_to(child: ApiChild, wanted_mb: float, patience_s: float = _PATIENCE_S) -> float:
    """The memory once it is no more than that; or after a long time."""
    deadline = time.monotonic() + patience_s
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


async def _come_and_go(child: ApiChild, names: list[str], properties: int) -> None:
    for name in names:
        body = crd_body(name, wide_schema(properties))
        assert await _send(child, Heavy("POST", CRDS, body)) == 201
    for name in names:
        path = f"{CRDS}/{name}s.heavy.test"
        assert await _send(child, Heavy("DELETE", path)) == 200
        # No controllers run here that would do so.
        freed = Heavy("PATCH", path, b'{"metadata":{"finalizers":null}}', MERGE)
        assert await _send(child, freed) in (200, 404)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_large_kinds_leave_no_memory_behind(nursery: Nursery, tmp_path: Path) -> None:
    """Once the history of watches, which has them too, is stale."""
    with running(nursery, tmp_path / "data") as child:
        asyncio.run(_come_and_go(child, ["small"], 3))
        before_mb = child.memory_mb()
        asyncio.run(_come_and_go(child, [f"wide{number}" for number in range(6)], 30_000))
        assert child.memory_mb() > before_mb * _ALLOWED
        wanted_mb = before_mb * _ALLOWED + CALM_BYTES / 2**20
        assert _falls_to(child, wanted_mb, FRESH_S + 60) <= wanted_mb
