import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

from kubeclient.client import Kube
from kubeclient.events import Recorder
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from localkube.kubelet.devices.stock import Counts
from localkube.kubelet.heartbeats import Heartbeats
from localkube.kubelet.node import node_from
from localkube.names import DEFAULT as NAMES
from tests.localkube.kubelet.world import NODE, node, settings

RESOURCE = "example.com/thing"


class SlowKube:
    """A post of a status returns when the test says so."""

    def __init__(self) -> None:
        self.posts: asyncio.Queue[Obj] = asyncio.Queue()
        self.go_on = asyncio.Semaphore(0)
        self.patched: Callable[[], None] = lambda: None

    async def patch(self, path: str, change: Obj, **_: Any) -> Obj:
        self.patched()
        if path.endswith("/status"):
            self.posts.put_nowait(change["status"])
            await self.go_on.acquire()
        return {}


class OneNode:
    def get(self, name: str) -> Obj:
        return node(name)


class NoEvents:
    def event(self, *_: object, **__: object) -> None:
        pass


@contextlib.asynccontextmanager
async def beating(
    directory: Path, kube: SlowKube, counts: Callable[[str], Counts]
) -> AsyncIterator[Heartbeats]:
    obj = node()
    obj["metadata"]["uid"] = "u"
    beats = Heartbeats(
        settings(directory),
        cast(Kube, kube),
        cast(Mirror, OneNode()),
        cast(Recorder, NoEvents()),
        counts,
    )
    beats.add(node_from(obj, NAMES))
    keeper = asyncio.ensure_future(beats.keep())
    try:
        async with asyncio.timeout(60):
            yield beats
    finally:
        keeper.cancel()


async def test_a_change_during_a_post_is_posted_next(tmp_path: Path) -> None:
    kube, listed = SlowKube(), 0

    def counts(name: str) -> Counts:
        return Counts({RESOURCE: listed}, {RESOURCE: listed})

    async with beating(tmp_path, kube, counts) as beats:
        assert (await kube.posts.get())["capacity"] == {RESOURCE: "0"}
        listed = 3
        beats.post_again(NODE)
        kube.go_on.release()
        assert (await kube.posts.get())["capacity"] == {RESOURCE: "3"}


async def test_a_status_change_during_another_write_is_not_lost(tmp_path: Path) -> None:
    kube = SlowKube()
    async with beating(tmp_path, kube, lambda name: Counts({}, {})) as beats:
        await kube.posts.get()
        kube.patched = lambda: beats.post_again(NODE)
        kube.go_on.release()
        beats.post_again(NODE)
        for _ in range(3):
            await kube.posts.get()
            kube.go_on.release()
