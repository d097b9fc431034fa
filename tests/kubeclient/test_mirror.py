"""Mirror: follows, resumes, relists, and reports every change once."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec
import orjson
import pytest

from kubeclient.client import Kube
from kubeclient.errors import NoAnswer
from kubeclient.mirror import Mirror
from kubeclient.resources import PODS

Obj = dict[str, Any]


def pod(name: str, version: int, node: str = "") -> Obj:
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}}


class Script:
    """A server that gives scripted answers to lists and watches."""

    def __init__(self, lists: list[tuple[int, list[Obj]]], watches: list[list[Obj | Exception]]):
        self.lists = lists
        self.watches = watches
        self.asked: list[str] = []
        self.at_end = asyncio.Event()

    async def call(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Any, body: bytes
    ) -> tuple[int, bytes]:
        self.asked.append("list")
        version, items = self.lists.pop(0)
        found = {"metadata": {"resourceVersion": str(version)}, "items": items}
        return 200, orjson.dumps(found)

    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Any
    ) -> AsyncGenerator[bytes, None]:
        self.asked.append(f"watch {query['resourceVersion']}")
        if not self.watches:
            self.at_end.set()
            await asyncio.Event().wait()
        for event in self.watches.pop(0):
            if isinstance(event, Exception):
                raise event
            line = orjson.dumps(event) + b"\n"
            yield line[:7]  # chunks need not end where lines do
            yield line[7:]


async def followed(script: Script) -> tuple[Mirror, list[tuple[str | None, str | None]]]:
    mirror = Mirror(Kube(script), PODS)
    mirror.add_index("node", lambda obj: [obj["spec"]["nodeName"]])
    seen: list[tuple[str | None, str | None]] = []

    def version(obj: Obj | None) -> str | None:
        return f"{obj['metadata']['name']}@{obj['metadata']['resourceVersion']}" if obj else None

    mirror.on_change(lambda old, new: seen.append((version(old), version(new))))
    task = asyncio.create_task(mirror.run())
    await asyncio.wait_for(script.at_end.wait(), 5)
    task.cancel()
    return mirror, seen


def event(kind: str, obj: Obj) -> Obj:
    return {"type": kind, "object": obj}


async def test_a_list_and_then_events_make_an_up_to_date_copy() -> None:
    script = Script(
        [(5, [pod("a", 3)])],
        [[event("MODIFIED", pod("a", 6, "n1")), event("ADDED", pod("b", 7, "n1"))]],
    )
    mirror, seen = await followed(script)
    assert seen == [(None, "a@3"), ("a@3", "a@6"), (None, "b@7")]
    assert [p["metadata"]["name"] for p in mirror.by("node", "n1")] == ["a", "b"]
    assert mirror.by("node", "") == []


async def test_a_watch_that_ends_is_resumed_where_it_ended() -> None:
    script = Script([(5, [])], [[event("ADDED", pod("a", 6))], [event("DELETED", pod("a", 9))]])
    mirror, seen = await followed(script)
    assert script.asked == ["list", "watch 5", "watch 6", "watch 9"]
    assert seen == [(None, "a@6"), ("a@9", None)]
    assert len(mirror) == 0


async def test_bookmarks_move_the_version_to_resume_from() -> None:
    script = Script([(5, [])], [[event("BOOKMARK", pod("", 50))]])
    await followed(script)
    assert script.asked[-1] == "watch 50"


async def test_an_expired_version_leads_to_a_relist_that_reports_the_differences() -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    script = Script(
        [(5, [pod("a", 3), pod("b", 4)]), (20, [pod("b", 4), pod("c", 15)])],
        [[gone]],
    )
    _, seen = await followed(script)
    assert script.asked == ["list", "watch 5", "list", "watch 20"]
    assert seen == [(None, "a@3"), (None, "b@4"), ("a@3", None), (None, "c@15")]


async def test_a_broken_connection_is_tried_again(monkeypatch: Any) -> None:
    monkeypatch.setattr("kubeclient.mirror._PAUSE_AFTER_FAILURE_S", 0.0)
    script = Script([(5, [])], [[NoAnswer("reset")], [event("ADDED", pod("a", 6))]])
    _, seen = await followed(script)
    assert script.asked == ["list", "watch 5", "watch 5", "watch 6"]
    assert seen == [(None, "a@6")]


async def test_readers_get_their_own_copies() -> None:
    mirror, _ = await followed(Script([(5, [pod("a", 3)])], []))
    first = mirror.get("a", "default")
    assert first is not None
    first["spec"]["nodeName"] = "changed"
    again = mirror.get("a", "default")
    assert again is not None
    assert again["spec"]["nodeName"] == ""


async def pauses_of(script: Script, monkeypatch: Any) -> list[float]:
    paused: list[float] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr("kubeclient.mirror._pause", pause)
    await followed(script)
    return paused


async def test_watches_that_end_at_once_are_asked_for_more_and_more_slowly(
    monkeypatch: Any,
) -> None:
    nothing: list[list[Obj | Exception]] = [[] for _ in range(8)]
    script = Script([(5, [])], nothing)
    assert await pauses_of(script, monkeypatch) == [1, 2, 4, 8, 16, 30, 30]


async def test_a_watch_that_ends_once_or_after_an_event_goes_on_at_once(monkeypatch: Any) -> None:
    added = [event("ADDED", pod(name, at)) for at, name in enumerate("abc", 6)]
    script = Script([(5, [])], [[], [added[0]], [], [added[1]], [added[2]], []])
    assert await pauses_of(script, monkeypatch) == []


async def test_a_server_that_calls_every_version_too_old_is_not_listed_without_a_pause(
    monkeypatch: Any,
) -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    script = Script([(at, []) for at in range(5, 10)], [[gone] for _ in range(4)])
    assert await pauses_of(script, monkeypatch) == [1, 2, 4]


class Broken(list[tuple[str, str | None]]):
    """What was told of objects that a function fails with."""

    def __call__(self, obj: Obj, error: Exception | None) -> None:
        self.append((obj["metadata"]["name"], None if error is None else str(error)))


def refuses(name: str, node: str = "") -> Any:
    def callback(old: Obj | None, new: Obj | None) -> None:
        if new is not None and new["metadata"]["name"] == name and new["spec"]["nodeName"] == node:
            raise OverflowError("too large")

    return callback


async def run_to_end(mirror: Mirror, script: Script) -> None:
    task = asyncio.create_task(mirror.run())
    at_end = asyncio.create_task(script.at_end.wait())
    await asyncio.wait((task, at_end), timeout=5, return_when=asyncio.FIRST_COMPLETED)
    at_end.cancel()
    assert not task.done(), task
    task.cancel()


async def test_an_object_that_a_callback_fails_with_stops_neither_the_mirror_nor_other_callbacks(
    caplog: Any,
) -> None:
    script = Script(
        [(5, [pod("odd", 3), pod("b", 4)])],
        [[event("MODIFIED", pod("odd", 6)), event("ADDED", pod("c", 7))]],
    )
    broken, seen = Broken(), list[str]()
    mirror = Mirror(Kube(script), PODS, broke=broken)
    mirror.on_change(refuses("odd"))
    mirror.on_change(lambda old, new: seen.append((new or old or {})["metadata"]["name"]))
    await run_to_end(mirror, script)
    assert seen == ["odd", "b", "odd", "c"]
    assert broken == [("odd", "too large"), ("odd", "too large")]
    assert mirror.get("odd", "default") is not None
    # Logged once with its name, however often it changes.
    [record] = [r for r in caplog.records if r.message == "object not understood"]
    assert record.object == "default/odd"
    assert record.exc_info


async def test_an_object_that_is_understood_again_or_gone_is_told_as_mended() -> None:
    script = Script(
        [(5, [pod("odd", 3), pod("other", 4)])],
        [[event("MODIFIED", pod("odd", 6, "n1")), event("DELETED", pod("other", 7))]],
    )
    broken = Broken()
    mirror = Mirror(Kube(script), PODS)
    mirror.on_change(refuses("odd"), broken)
    mirror.on_change(refuses("other"), broken)
    await run_to_end(mirror, script)
    assert broken == [("odd", "too large"), ("other", "too large"), ("odd", None), ("other", None)]


async def test_an_object_whose_index_fails_is_kept_without_that_index() -> None:
    script = Script(
        [(5, [pod("odd", 3, "n1"), pod("b", 4, "n1")])],
        [[event("MODIFIED", pod("b", 6, "n2")), event("DELETED", pod("odd", 7, "n1"))]],
    )

    def half(obj: Obj) -> Any:
        yield obj["spec"]["nodeName"]
        if obj["metadata"]["name"] == "odd":
            raise ValueError("no index")

    broken, seen = Broken(), list[str]()
    mirror = Mirror(Kube(script), PODS, broke=broken)
    mirror.add_index("half", half)
    mirror.on_change(lambda old, new: seen.append((new or old or {})["metadata"]["name"]))
    await run_to_end(mirror, script)
    assert seen == ["odd", "b", "b", "odd"]
    assert mirror.by("half", "n1") == []
    assert [p["metadata"]["name"] for p in mirror.by("half", "n2")] == ["b"]
    assert broken == [("odd", "no index"), ("odd", None)]


async def test_a_callback_and_an_index_that_come_late_fail_alone_too() -> None:
    script = Script([(5, [pod("odd", 3), pod("b", 4)])], [])
    broken = Broken()
    mirror = Mirror(Kube(script), PODS)
    await run_to_end(mirror, script)
    mirror.on_change(refuses("odd"), broken)
    mirror.add_index("none", lambda obj: obj["nothing"])
    assert broken == [("odd", "too large")]
    assert mirror.by("none", "x") == []


async def test_an_event_that_is_none_is_a_failed_watch(monkeypatch: Any) -> None:
    monkeypatch.setattr("kubeclient.mirror._PAUSE_AFTER_FAILURE_S", 0.0)
    odd: list[Obj | Exception] = [{"type": "ADDED"}]
    script = Script([(5, [pod("a", 3)])], [odd, [{"type": "ADDED", "object": {"metadata": 3}}]])
    mirror = Mirror(Kube(script), PODS)
    await run_to_end(mirror, script)
    assert script.asked == ["list", "watch 5", "watch 5", "watch 5"]


async def test_a_mistake_that_every_object_runs_into_does_not_fill_the_log(caplog: Any) -> None:
    script = Script([(5, [pod(f"p{number}", 3) for number in range(5_000)])], [])
    broken = Broken()
    mirror = Mirror(Kube(script), PODS, broke=broken)
    mirror.on_change(lambda old, new: (new or {})["nothing"])
    await run_to_end(mirror, script)
    assert len(broken) == 5_000
    said = [record for record in caplog.records if record.message == "object not understood"]
    assert len(said) <= 1_000
    assert len([record for record in said if record.exc_info]) == 1


async def test_a_mirror_of_a_namespace_asks_for_that_namespace_only() -> None:
    """Whoever may see one namespace is refused a list of all."""
    paths: list[str] = []

    class Listening(Script):
        async def call(self, method: str, path: str, **given: Any) -> tuple[int, bytes]:
            paths.append(path)
            return await super().call(method, path, **given)

        def stream(self, path: str, **given: Any) -> AsyncGenerator[bytes, None]:
            paths.append(path)
            return super().stream(path, **given)

    script = Listening([(1, [])], [])
    task = asyncio.create_task(Mirror(Kube(script), PODS, namespace="team").run())
    await script.at_end.wait()
    task.cancel()
    assert paths == ["/api/v1/namespaces/team/pods"] * 2


async def test_others_go_on_while_a_large_list_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that cannot renew its Lease meanwhile loses it, and has to read all again."""
    monkeypatch.setattr("kubeclient.turns._TURN_S", -1.0)  # every turn is over at once
    mirror = Mirror(Kube(Script([(5, [pod(f"p{at}", 3) for at in range(200)])], [])), PODS)
    seen: list[str] = []
    mirror.on_change(lambda _, new: seen.append("pod"))

    async def renew() -> None:
        while True:
            seen.append("renewed")
            await asyncio.sleep(0)

    task, other = asyncio.create_task(mirror.run()), asyncio.create_task(renew())
    await mirror.wait_synced()
    for each in (task, other):
        each.cancel()
    while_told = seen[seen.index("pod") :]
    assert while_told.count("renewed") > 100


async def test_pages_of_an_older_state_are_forgotten() -> None:
    answers = iter(
        (
            (200, page_of(pod("old", 3), more="next")),
            (410, {"kind": "Status", "code": 410, "reason": "Expired"}),
            (200, page_of(pod("new", 9))),
        )
    )

    class Pages(Script):
        async def call(self, *_: Any, **__: Any) -> tuple[int, bytes]:
            status, found = next(answers)
            return status, orjson.dumps(found)

    mirror, seen = await followed(Pages([], []))
    assert seen == [(None, "new@9")]
    assert mirror.version == 9


def page_of(obj: Obj, more: str = "") -> Obj:
    version = obj["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version, "continue": more}, "items": [obj]}


async def test_a_later_list_is_told_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who decided in between would take for free what only changes hands."""
    monkeypatch.setattr("kubeclient.turns._TURN_S", -1.0)  # every turn is over at once
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    lists = [(5, [pod("old", 3)]), (9, [pod(f"new{at}", 8) for at in range(20)])]
    script = Script(lists, [[gone]])
    mirror = Mirror(Kube(script), PODS)
    sizes: set[int] = set()

    async def look() -> None:
        while True:
            sizes.add(len(mirror))
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(look()), asyncio.create_task(mirror.run())]
    await asyncio.wait_for(script.at_end.wait(), 5)
    for task in tasks:
        task.cancel()
    assert sizes <= {0, 1, 20}


class _Named(msgspec.Struct, omit_defaults=True):
    name: str
    resourceVersion: str


class _Part(msgspec.Struct):
    metadata: _Named


async def test_of_a_large_kind_only_the_wanted_part_is_kept() -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    watch: list[Obj | Exception] = [
        event("ADDED", pod("b", 6)),
        event("DELETED", pod("a", 7)),
        gone,
    ]
    script = Script([(5, [pod("a", 3)]), (8, [pod("b", 6), pod("c", 8)])], [watch])
    mirror = Mirror(Kube(script), PODS, part=_Part)
    kept: list[Obj | None] = []
    mirror.on_change(lambda _, new: kept.append(new))
    await run_to_end(mirror, script)
    assert script.asked == ["list", "watch 5", "list", "watch 8"]
    assert [set(new) for new in kept if new is not None] == [{"metadata"}] * 3
    names = [new and new["metadata"]["name"] for new in kept]
    assert names == ["a", "b", None, "c"]


async def test_an_event_without_the_wanted_part_is_a_failed_watch(monkeypatch: Any) -> None:
    monkeypatch.setattr("kubeclient.mirror._PAUSE_AFTER_FAILURE_S", 0.0)
    odd: list[Obj | Exception] = [event("ADDED", {"metadata": {"name": 3}})]
    script = Script([(5, [pod("a", 3)])], [odd])
    mirror = Mirror(Kube(script), PODS, part=_Part)
    await run_to_end(mirror, script)
    assert script.asked == ["list", "watch 5", "watch 5"]
    assert len(mirror) == 1
