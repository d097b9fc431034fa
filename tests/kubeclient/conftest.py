"""Commands run on asyncio's loop, programs on uvloop: tests of connections run on both."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

_ON_BOTH = ("test_https", "test_hostile_servers", "test_connections")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    own = {"asyncio": asyncio.new_event_loop}
    return {**own, "uvloop": uvloop.new_event_loop} if item.path.stem in _ON_BOTH else own
