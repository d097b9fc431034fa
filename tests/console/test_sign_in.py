"""Signing in to the console when the API server cannot be reached."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from gpupool.console.model import Model
from gpupool.console.server import Console
from gpupool.console.sign_in import SignInMethods
from kubeclient.errors import NotSent, Refused


class Unreachable:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def create(self, *_: object, **__: object) -> None:
        raise self._error


def new_model() -> Model:
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

    console = Console(SignInMethods(lambda: 0.0, as_user=as_user), new_model)
    async with TestClient(TestServer(console.application())) as client:
        origin = {"Origin": str(client.make_url("")).rstrip("/")}
        answer = await client.post("/sign-in", data={"token": "a-token"}, headers=origin)
        assert answer.status == code
    assert opened == []
