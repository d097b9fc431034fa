"""Programs in the API server's own process call it without a socket, often without any wait."""

import asyncio

import pytest

from kubeclient import turns
from kubeclient.resources import NAMESPACES
from localkube.apiserver.security.identities import ADMIN
from tests.localkube.apiserver.stalls.watched import Watched


async def test_many_calls_in_a_row_let_others_go_first(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As garbage collection makes them for an object of 15,000 owners."""
    monkeypatch.setattr(turns, "_TURN_S", -1.0)
    kube = watched.server.client(ADMIN)
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    for _ in range(50):
        await kube.get(NAMESPACES, "default")
    beside.cancel()
    assert others >= 50
