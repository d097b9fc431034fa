import asyncio
from collections.abc import AsyncGenerator, Mapping

import orjson
import pytest

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
        self.pods: set[str] = set()

    def seen(self, obj: Obj) -> None:
        uid = obj["metadata"]["uid"]
        self.heard.append(f"+{uid}")
        self.pods.add(uid)

    def gone(self, uid: str) -> None:
        self.heard.append(f"-{uid}")
        self.pods.discard(uid)

    def known(self) -> set[str]:
        self.heard.append("complete")
        return set(self.pods)


async def follow(feed: PodFeed, script: Script) -> None:
    task = asyncio.ensure_future(feed.run())
    done = asyncio.ensure_future(script.done.wait())
    await asyncio.wait((task, done), timeout=10, return_when=asyncio.FIRST_COMPLETED)
    done.cancel()
    assert not task.done(), task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def heard(*watches: list[bytes]) -> tuple[list[str], list[str]]:
    """What the listener got, and the resourceVersion of each watch."""
    script, notes = Script(*watches), Notes()
    await follow(PodFeed(Kube(script), notes), script)
    return notes.heard, script.asked


async def test_existing_pods_and_later_changes_are_reported() -> None:
    told, asked = await heard(
        [event("ADDED", "a", 1), end(5), event("MODIFIED", "a", 6) + event("DELETED", "a", 7)]
    )
    assert told == ["+a", "complete", "+a", "-a"]
    assert asked == ["", "7"]


async def test_initial_events_that_break_off_start_again() -> None:
    told, asked = await heard([event("ADDED", "a", 1)], [event("ADDED", "b", 2), end(3)])
    assert told == ["+a", "+b", "complete", "-a"]
    assert asked == ["", "", "3"]


async def test_lines_may_be_torn_between_chunks() -> None:
    line = event("ADDED", "a", 1)
    told, _ = await heard([line[:10], line[10:-1], line[-1:] + end(2)])
    assert told == ["+a", "complete"]


async def test_an_expired_version_restarts_the_watch() -> None:
    told, asked = await heard([end(5)], [EXPIRED], [event("ADDED", "b", 9), end(9)])
    assert told == ["complete", "+b", "complete"]
    assert asked == ["", "5", "", "9"]


class Picky(Notes):
    """Fails with one pod."""

    def seen(self, obj: Obj) -> None:
        super().seen(obj)
        if obj["metadata"]["uid"] == "odd":
            obj["metadata"].clear()  # a listener may change the object
            raise ValueError("year 0 is out of range")

    def gone(self, uid: str) -> None:
        super().gone(uid)
        if uid == "odd":
            raise KeyError(uid)


async def test_a_pod_that_the_listener_fails_with_does_not_stop_the_feed() -> None:
    script = Script(
        [event("ADDED", "odd", 1) + event("ADDED", "b", 2), end(5)],
        [event("DELETED", "odd", 6) + event("MODIFIED", "b", 7)],
        [EXPIRED],
        [event("ADDED", "c", 8), end(9)],
    )
    notes = Picky()
    broken: list[str] = []
    await follow(PodFeed(Kube(script), notes, lambda obj, error: broken.append(str(error))), script)
    assert notes.heard == ["+odd", "+b", "complete", "-odd", "+b", "+c", "complete", "-b"]
    assert script.asked == ["", "5", "7", "", "9"]
    assert broken == ["year 0 is out of range", "None"]


async def test_a_line_that_is_no_event_is_a_broken_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localkube.kubelet.pod_feed._PAUSE_AFTER_FAILURE_S", 0.0)
    _, asked = await heard([end(5)], [b"half\n"], [b"{}\n"], [b"[3]\n"])
    assert asked == ["", "5", "5", "5", "5"]
