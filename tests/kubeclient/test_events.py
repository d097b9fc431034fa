"""Recorder: repeated events are counted, floods are limited, and callers are not blocked."""

import asyncio
import datetime
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import orjson
import pytest

from kubeclient.client import Kube
from kubeclient.events import NORMAL, Recorder

Obj = dict[str, Any]
POD: Obj = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
}


class Desk:
    """A server that keeps written objects, and a clock."""

    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        self.written: list[tuple[str, Obj]] = []

    async def call(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Any, body: bytes
    ) -> tuple[int, bytes]:
        self.written.append((method, orjson.loads(body)))
        return 200, b"{}"

    def stream(self, path: str, *, query: Any, headers: Any) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nothing is watched here")


async def written(desk: Desk, recorder: Recorder) -> list[tuple[str, Obj]]:
    task = asyncio.create_task(recorder.run())
    for _ in range(2 * _waiting(recorder) + 5):  # nothing here waits for anybody else
        await asyncio.sleep(0)
    assert not _waiting(recorder)
    task.cancel()
    return desk.written


def _waiting(recorder: Recorder) -> int:
    return sum(queue.qsize() for queue in recorder._queues)


def recorder_at(desk: Desk) -> Recorder:
    return Recorder(Kube(desk), "kubelet", lambda: desk.now)


async def test_an_event_names_its_object_and_its_source() -> None:
    desk = Desk()
    recorder = recorder_at(desk)
    recorder.event(
        POD, NORMAL, "Started", "Container started", host="n1", path="spec.containers{c}"
    )
    [(method, event)] = await written(desk, recorder)
    assert method == "POST"
    assert event["involvedObject"]["uid"] == "u1"
    assert event["involvedObject"]["fieldPath"] == "spec.containers{c}"
    assert event["source"] == {"component": "kubelet", "host": "n1"}
    assert event["count"] == 1


async def test_a_repeated_event_is_counted() -> None:
    desk = Desk()
    recorder = recorder_at(desk)
    for _ in range(3):
        recorder.event(POD, NORMAL, "BackOff", "again")
    found = await written(desk, recorder)
    assert [method for method, _ in found] == ["POST", "PATCH", "PATCH"]
    assert found[-1][1]["count"] == 3


async def test_an_event_that_cannot_be_sent_does_not_stop_the_others() -> None:
    desk = Desk()
    recorder = recorder_at(desk)
    recorder.event(POD, NORMAL, "Broken", "no text: \ud800")
    recorder.event(POD, NORMAL, "Started", "Container started")
    assert [event["reason"] for _, event in await written(desk, recorder)] == ["Started"]


async def test_events_of_one_object_are_rate_limited() -> None:
    desk = Desk()
    recorder = recorder_at(desk)
    for number in range(100):
        recorder.event(POD, NORMAL, "SuccessfulCreate", f"Created pod: {number}")
    assert len(await written(desk, recorder)) == 25
    desk.now += datetime.timedelta(minutes=10)
    for number in range(100, 110):
        recorder.event(POD, NORMAL, "SuccessfulCreate", f"Created pod: {number}")
    assert len(await written(desk, recorder)) == 27
    other = {**POD, "metadata": {**POD["metadata"], "uid": "u2"}}
    recorder.event(other, NORMAL, "Started", "another object has its own allowance")
    assert len(await written(desk, recorder)) == 28


async def test_events_wait_while_writes_are_at_the_limit() -> None:
    desk, below_limit = Desk(), asyncio.Event()
    recorder = Recorder(Kube(desk), "scheduler", lambda: desk.now, below_limit)
    for number in range(3):
        recorder.event(POD, NORMAL, "Scheduled", f"assigned, {number}")
    writing = asyncio.create_task(recorder.run())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not desk.written
    below_limit.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert [event["message"] for _, event in desk.written] == [
        "assigned, 0",
        "assigned, 1",
        "assigned, 2",
    ]
    writing.cancel()


async def test_events_wait_only_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubeclient.events._LONGEST_WAIT_S", 0.0)
    desk = Desk()
    recorder = Recorder(Kube(desk), "scheduler", lambda: desk.now, asyncio.Event())
    recorder.event(POD, NORMAL, "Scheduled", "assigned")
    assert len(await written(desk, recorder)) == 1


async def test_a_clock_that_is_set_back_silences_nobody() -> None:
    desk = Desk()
    recorder = recorder_at(desk)
    recorder.event(POD, NORMAL, "Started", "before")
    desk.now -= datetime.timedelta(days=365)
    recorder.event(POD, NORMAL, "Started", "after")
    assert [event["message"] for _, event in await written(desk, recorder)] == ["before", "after"]


async def test_the_longest_name_of_an_object_leaves_room_for_that_of_its_event() -> None:
    desk = Desk()
    recorder = recorder_at(desk)
    name = "a" * 230 + "-" * 10 + "b" * 13
    recorder.event(
        {**POD, "metadata": {**POD["metadata"], "name": name}}, NORMAL, "Started", "text"
    )
    (_, event), *_ = await written(desk, recorder)
    assert len(event["metadata"]["name"]) <= 253
    assert event["involvedObject"]["name"] == name
    assert re.fullmatch(r"a{230}\.[0-9a-f]+", event["metadata"]["name"])
