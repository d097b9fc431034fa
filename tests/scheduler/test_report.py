"""Reports: each message once, only the newest, limited in rate, and never for a bound pod."""

import asyncio
import datetime
import logging
from collections.abc import AsyncGenerator
from typing import Any

import orjson
import pytest

from gpupool.scheduler.pending import Pending, pending_of
from gpupool.scheduler.report import Reports
from kubeclient.client import Headers, Kube, Query
from kubeclient.events import Recorder
from kubeclient.objects import Obj
from tests.scheduler.stepped import Stepped


def pod(uid: str = "u", version: str = "7") -> Pending:
    return pending_of(
        {
            "metadata": {
                "name": "p",
                "namespace": "default",
                "uid": uid,
                "resourceVersion": version,
            },
            "spec": {"schedulerName": "s", "containers": [{"name": "c"}]},
        },
        0.0,
    )


class Desk:
    """A server that keeps written objects, a clock, and the pending pods."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.conditions: list[Obj] = []
        self.events: list[str] = []
        self.conflict = False
        self.pending: dict[str, Pending] = {"u": pod()}
        kube = Kube(self)
        self.reports = Reports(
            kube, {"s": Recorder(kube, "s", _now)}, self.pending, clock=lambda: self.now_s, now=_now
        )

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        document: Any = orjson.loads(body)
        if path.endswith("/status"):
            self.conditions.append(document)
            if self.conflict:
                return 409, b'{"reason": "Conflict"}'
        else:
            self.events.append(document.get("message", ""))
        return 200, b"{}"

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nothing is watched here")

    async def after(self, seconds: float) -> list[str]:
        """The messages of the conditions that were written by then."""
        self.now_s += seconds
        self.reports._wake.set()
        task = asyncio.create_task(self.reports.run())
        for _ in range(30):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [each["status"]["conditions"][0]["message"] for each in self.conditions]


def _now() -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


async def test_the_first_report_is_immediate_and_the_next_one_later() -> None:
    desk = Desk()
    desk.reports.waits(pod(), lambda: "one")
    assert await desk.after(0) == ["one"]
    desk.reports.waits(pod(), lambda: "two")
    desk.reports.waits(pod(), lambda: "three")
    assert await desk.after(0.5) == ["one"]
    assert await desk.after(2) == ["one", "three"]
    assert desk.events == ["one", "three"]


async def test_news_that_others_decide_by_break_the_silence() -> None:
    """Commands that only ask, and a new leader, know of kept room by the condition alone."""
    desk = Desk()
    words = ["one"]
    desk.reports.waits(pod(), lambda: words[-1])
    for at in range(7):  # the silence gets long
        words.append(f"{at}")
        desk.reports.waits(pod(), lambda: words[-1])
        await desk.after(100)
    words.append("Reserved for it")
    desk.reports.waits(pod(), lambda: words[-1])
    assert (await desk.after(1))[-1] == "6"
    desk.reports.at_once("u")
    assert (await desk.after(0))[-1] == "Reserved for it"
    events = list(desk.events)
    desk.reports.at_once("nobody")
    await desk.after(1000)
    assert desk.events == events


async def test_the_same_message_is_not_reported_twice() -> None:
    desk = Desk()
    for _ in range(3):
        desk.reports.waits(pod(), lambda: "one")
        await desk.after(100)
        desk.pending["u"] = pending_of(_with_condition("one"), 0.0)
    assert desk.events == ["one"]
    assert len(desk.conditions) == 1


async def test_a_pod_that_is_not_pending_gets_no_condition() -> None:
    desk = Desk()
    desk.reports.waits(pod(), lambda: "one")
    del desk.pending["u"]
    assert await desk.after(0) == []
    assert not desk.reports._news


async def test_a_condition_carries_the_seen_version_and_a_conflict_is_retried() -> None:
    desk = Desk()
    desk.conflict = True
    desk.reports.waits(pod(), lambda: "one")
    await desk.after(0)
    desk.pending["u"] = pod(version="8")
    desk.conflict = False
    await desk.after(10)
    versions = [each["metadata"]["resourceVersion"] for each in desk.conditions]
    assert versions == ["7", "8"]
    assert desk.events == ["one"]


async def test_a_message_that_cannot_be_made_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    desk.pending["v"] = pod("v")

    def broken() -> str:
        raise RecursionError

    desk.reports.waits(desk.pending["v"], broken)
    desk.reports.waits(pod(), lambda: "one")
    with caplog.at_level(logging.ERROR):
        assert await desk.after(0) == ["one"]
    assert [getattr(record, "pod", "") for record in caplog.records] == ["v"]


async def test_a_pod_that_goes_leaves_no_news_behind() -> None:
    stepped = Stepped()
    stepped.api.set_node("n", ill=False)
    for name in ("deleted", "terminating", "bound"):
        stepped.api.add_pod(name, 100)
        await stepped.settle()
    assert len(stepped.scheduler._reports._news) == 3
    stepped.api.delete_pod("deleted")
    stepped.api.terminate_pod("terminating")
    stepped.api._bind(stepped.api.pods["bound"], {"target": {"name": "n"}, "metadata": {}})
    stepped.tell()
    assert not stepped.scheduler._reports._news


async def test_long_messages_are_cut_as_in_kube_scheduler() -> None:
    desk = Desk()
    desk.reports.waits(pod(), lambda: "x" * 3000)
    await desk.after(0)
    assert len(desk.events[0]) == 1024
    assert desk.events[0].endswith("x ...")


async def test_a_condition_has_the_observed_generation() -> None:
    desk = Desk()
    known = _with_condition("one")
    known["metadata"]["generation"] = 3
    desk.pending["u"] = pending_of(known, 0.0)
    desk.reports.waits(desk.pending["u"], lambda: "two")
    await desk.after(0)
    (condition,) = desk.conditions[0]["status"]["conditions"]
    assert condition["observedGeneration"] == 3


def _with_condition(message: str) -> Obj:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "9"},
        "spec": {"schedulerName": "s", "containers": [{"name": "c"}]},
        "status": {"conditions": [condition]},
    }
