"""A watch: a bookmark never promises a version of which an event is still to come."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind, builtin_kinds
from localkube.apiserver.request import Request
from localkube.apiserver.store import watch_log as logs
from localkube.apiserver.store.record import record_of
from localkube.apiserver.store.watch_log import ADDED, Event, WatchLog
from localkube.apiserver.verbs import watch
from localkube.apiserver.verbs.options import list_options

KIND = next(kind for kind in builtin_kinds() if kind.resource == "configmaps")
EVERY_S = 0.2
OPTIONS = list_options(Request("GET", "/", "watch=true&allowWatchBookmarks=true&resourceVersion=1"))


async def as_they_are(records: Any, _: Kind, *, in_watch: bool) -> Any:
    assert in_watch
    return records


class World:
    """A store with one log, and one watch of it."""

    def __init__(self) -> None:
        self.log = WatchLog(1)
        self.published_rv = 1
        self.told: list[tuple[str, int]] = []
        self.is_over = asyncio.Event()
        watcher = self.log.follow(1, None)
        assert watcher is not None
        api: Any = SimpleNamespace(
            store=SimpleNamespace(log=lambda _: self.log, published_rv=self.published_rv),
            conversions=SimpleNamespace(served=as_they_are),
        )
        self._store = api.store
        follower = watch._Follower(
            api, KIND, watcher, lambda kind, _, body: watch._line(kind, body), OPTIONS
        )
        self.chunks = follower.chunks((), 3600.0)

    def publish(self, version: int) -> None:
        metadata = {"name": f"c{version}", "namespace": "default", "uid": str(version)}
        record = record_of(
            {"metadata": metadata}, row=version, resource="configmaps", rv=version, selectable=()
        )
        self.log.publish(Event(ADDED, record, None))
        self._store.published_rv = version

    async def read(self) -> None:
        async for chunk in self.chunks:
            for line in chunk.splitlines():
                event: Obj = orjson.loads(line)
                version = int(event["object"]["metadata"]["resourceVersion"])
                self.told.append((event["type"], version))
        self.is_over.set()


async def in_the_same_turn(world: World, act: Any) -> None:
    """The loop is busy when the time for a bookmark comes; right after it, `act` is due, too."""
    loop = asyncio.get_running_loop()
    loop.call_later(EVERY_S * 0.5, time.sleep, EVERY_S * 2)
    loop.call_later(EVERY_S * 1.5, act)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_EVERY_S", EVERY_S)


async def test_a_bookmark_does_not_overtake_an_event_of_the_same_moment() -> None:
    world = World()
    reading = asyncio.create_task(world.read())
    await asyncio.sleep(0)
    await in_the_same_turn(world, lambda: world.publish(7))
    async with asyncio.timeout(30):
        while not world.told:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert world.told[0] == (ADDED, 7)
    reading.cancel()


async def test_a_watch_that_is_cut_off_gets_no_bookmark_over_what_it_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "WATCHER_BUFFER_BYTES", 10)
    world = World()
    reading = asyncio.create_task(world.read())
    await asyncio.sleep(0)
    await in_the_same_turn(world, lambda: world.publish(7))
    await asyncio.wait_for(world.is_over.wait(), 30)
    assert world.told == []
    await reading
