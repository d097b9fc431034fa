import asyncio
from collections.abc import AsyncGenerator, Mapping

import orjson

from kubeclient.client import Kube
from kubeclient.objects import Obj
from localkube.kubelet.pod_feed import PodFeed

END = {"k8s.io/initial-events-end": "true"}


def event(kind: str, uid: str, version: int, **annotations: str) -> bytes:
    metadata: Obj = {"uid": uid, "resourceVersion": str(version), "annotations": annotations}
    return orjson.dumps({"type": kind, "object": {"metadata": metadata}}) + b"\n"


def end(version: int) -> bytes:
    return event("BOOKMARK", "", version, **END)


EXPIRED = orjson.dumps({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}) + b"\n"


class Script:
    """A server that answers each watch with the next list of chunks, and later ones with
    nothing."""

    def __init__(self, *watches: list[bytes]) -> None:
        self.watches = list(watches)
        self.asked: list[str] = []
        self.done = asyncio.Event()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, bytes]:
        raise AssertionError("only watches")

    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        self.asked.append(query["resourceVersion"])
        if not self.watches:
            self.done.set()
            await asyncio.Event().wait()
        for chunk in self.watches.pop(0):
            yield chunk


class Notes:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def seen(self, obj: Obj) -> None:
        self.heard.append(f"+{obj['metadata']['uid']}")

    def gone(self, obj: Obj) -> None:
        self.heard.append(f"-{obj['metadata']['uid']}")

    def only(self, uids: set[str]) -> None:
        self.heard.append(f"only {','.join(sorted(uids))}")


async def heard(*watches: list[bytes]) -> tuple[list[str], list[str]]:
    """What the listener got, and the resourceVersion of each watch."""
    script, notes = Script(*watches), Notes()
    task = asyncio.ensure_future(PodFeed(Kube(script), notes).run())
    await script.done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return notes.heard, script.asked


async def test_existing_pods_and_later_changes_are_reported() -> None:
    told, asked = await heard(
        [event("ADDED", "a", 1), end(5), event("MODIFIED", "a", 6) + event("DELETED", "a", 7)]
    )
    assert told == ["+a", "only a", "+a", "-a"]
    assert asked == ["", "7"]


async def test_initial_events_that_break_off_start_again() -> None:
    told, asked = await heard([event("ADDED", "a", 1)], [event("ADDED", "b", 2), end(3)])
    assert told == ["+a", "+b", "only b"]
    assert asked == ["", "", "3"]


async def test_lines_may_be_torn_between_chunks() -> None:
    line = event("ADDED", "a", 1)
    told, _ = await heard([line[:10], line[10:-1], line[-1:] + end(2)])
    assert told == ["+a", "only a"]


async def test_an_expired_version_restarts_the_watch() -> None:
    told, asked = await heard([end(5)], [EXPIRED], [event("ADDED", "b", 9), end(9)])
    assert told == ["only ", "+b", "only b"]
    assert asked == ["", "5", "", "9"]
