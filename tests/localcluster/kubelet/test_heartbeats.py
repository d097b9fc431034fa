import asyncio
from pathlib import Path
from typing import Any, cast

from gpupool.contract.objects import Obj
from gpupool.kube.client import Kube
from gpupool.kube.events import Recorder
from gpupool.kube.mirror import Mirror
from gpupool.localcluster.kubelet.devices.stock import Counts
from gpupool.localcluster.kubelet.heartbeats import Heartbeats
from gpupool.localcluster.kubelet.node import node_from
from tests.localcluster.kubelet.world import NODE, node, settings

RESOURCE = "example.com/thing"


class SlowKube:
    """Every post of a status takes as long as the test wants."""

    def __init__(self) -> None:
        self.posts: asyncio.Queue[Obj] = asyncio.Queue()
        self.go_on = asyncio.Semaphore(0)

    async def patch(self, path: str, change: Obj, **_: Any) -> Obj:
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


async def test_what_changes_during_a_post_is_posted_too(tmp_path: Path) -> None:
    kube, listed = SlowKube(), 0
    obj = node()
    obj["metadata"]["uid"] = "u"

    def counts(name: str) -> Counts:
        return Counts({RESOURCE: listed}, {RESOURCE: listed})

    beats = Heartbeats(
        settings(tmp_path),
        cast(Kube, kube),
        cast(Mirror, OneNode()),
        cast(Recorder, NoEvents()),
        counts,
    )
    beats.add(node_from(obj))
    keeper = asyncio.ensure_future(beats.keep())
    try:
        async with asyncio.timeout(10):
            assert (await kube.posts.get())["capacity"] == {RESOURCE: "0"}
            listed = 3
            beats.post_again(NODE)
            kube.go_on.release()
            assert (await kube.posts.get())["capacity"] == {RESOURCE: "3"}
    finally:
        keeper.cancel()
