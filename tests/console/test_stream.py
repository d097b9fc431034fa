"""Live pages: a reader who has left is noticed before anything changes."""

import asyncio
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gpupool.console.answers import frame_of
from gpupool.console.server import Console
from gpupool.console.stream import _has_changed, follow


class Watches:
    """Nothing ever changes, and waiting takes no time."""

    def __init__(self) -> None:
        self.waited_s = 0.0

    async def next_change(self, _: object, within_s: float) -> bool:
        self.waited_s += within_s
        return False


class Sight:
    def __init__(self) -> None:
        self.watches = Watches()


class Session:
    def __init__(self) -> None:
        self.sight = Sight()


class Transport:
    def is_closing(self) -> bool:
        return False


class Request:
    def __init__(self, transport: Transport | None) -> None:
        self.transport = transport


def asked(transport: Transport | None, session: Session) -> bool:
    request = cast("Any", Request(transport))
    return asyncio.run(_has_changed(request, cast("Any", session), {}))


def test_a_page_that_was_left_ends_without_a_write() -> None:
    session = Session()
    with pytest.raises(ConnectionResetError):
        asked(None, session)
    assert session.sight.watches.waited_s == 0


def test_a_page_that_is_looked_at_is_quiet_for_a_while() -> None:
    session = Session()
    assert not asked(Transport(), session)
    assert session.sight.watches.waited_s == 15


async def test_a_page_that_was_left_at_once_is_no_mistake_of_the_console(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def is_gone(*_: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(web.StreamResponse, "prepare", is_gone)
    anything = cast("Any", None)
    answer = await follow(anything, anything, anything, lambda: 0.0)
    assert not answer.prepared


async def test_a_log_that_was_left_before_it_began_is_no_mistake_of_the_console(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def is_gone(_: web.Request) -> web.StreamResponse:
        raise ConnectionResetError

    transport = Mock()
    transport.is_closing.return_value = True
    left = make_mocked_request("GET", "/pods/a/b/logs/text", transport=transport)
    console: Any = Mock(_frame=AsyncMock(return_value=frame_of(left)))
    assert (await Console._answered(console, left, is_gone)).status == 200
    assert not caplog.records
    transport.is_closing.return_value = False
    assert (await Console._answered(console, left, is_gone)).status == 500
    assert caplog.records, "a server that it asks has broken off: somebody has to know"
