"""Signing in to the console when the API server cannot be reached."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from gpupool.console.overview import ClusterView
from gpupool.console.server import Console, SignInMethods
from kubeclient.client import Kube
from kubeclient.errors import NotSent, Refused


class Unreachable:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def list(self, *_: object, **__: object) -> None:
        raise self._error


async def read(kube: Kube) -> ClusterView:
    raise AssertionError("nobody is signed in")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotSent("connection refused"), 502),
        (Refused({"message": "Unauthorized", "code": 401}), 403),
        (RuntimeError("a mistake of ours"), 500),
    ],
)
async def test_a_failed_sign_in_leaves_no_client_open(error: Exception, code: int) -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def as_user(token: str) -> AsyncIterator[Any]:
        opened.append(token)
        try:
            yield Unreachable(error)
        finally:
            opened.remove(token)

    console = Console(SignInMethods(read, lambda: 0.0, as_user=as_user))
    async with TestClient(TestServer(console.application())) as client:
        answer = await client.post("/sign-in", data={"token": "a-token"})
        assert answer.status == code
    assert opened == []
