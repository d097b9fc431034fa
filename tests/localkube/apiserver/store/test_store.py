"""The store: versions, order, durability, and what happens when the disk says no."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from localkube.apiserver.store import disk
from localkube.apiserver.store.disk import StoreDamaged
from localkube.apiserver.store.record import Record
from localkube.apiserver.store.store import NotWritten, Store

PODS = "pods"


def selectable(resource: str) -> tuple[str, ...]:
    return ("spec.nodeName",) if resource == PODS else ()


def thing(name: str, namespace: str = "default", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
        **more,
    }


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(tmp_path / "store.db", selectable)
    opened.start()
    yield opened
    opened.close()


def names(records: Sequence[Record]) -> list[str]:
    return [f"{record.namespace}/{record.name}" for record in records]


async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    first = Store(tmp_path / "store.db", selectable)
    first.start()
    kept = first.create(PODS, thing("a"))
    changed = first.replace(kept, thing("a", spec={"nodeName": "n1"}))
    gone = first.create(PODS, thing("b"))
    await first.durable(first.remove(gone))
    first.close()
    second = Store(tmp_path / "store.db", selectable)
    assert [r.body for r in second.records(PODS)] == [changed.body]
    assert names(second.pods_on("n1")) == ["default/a"]
    assert second.rv > first.rv, "versions that were seen must not be given out again"
    second.close()


async def test_lists_are_in_order_of_namespace_and_name(store: Store) -> None:
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y"), ("c", "a")):
        store.create(PODS, thing(name, namespace))
    assert names(store.records(PODS)) == ["a/y", "a/z", "b/x", "c/a"]
    assert names(store.records(PODS, "a")) == ["a/y", "a/z"]


async def test_versions_only_grow(store: Store) -> None:
    first = store.create(PODS, thing("a"))
    second = store.replace(first, thing("a", spec={}))
    third = store.remove(second)
    assert first.rv < second.rv < third.rv == store.rv


async def test_watchers_hear_of_a_change_only_once_it_is_on_disk(store: Store) -> None:
    watcher = store.log(PODS).follow(store.rv, None)
    assert watcher is not None
    record = store.create(PODS, thing("a"))
    assert not watcher.buffer
    await store.durable(record)
    assert [(kind, r.name) for kind, r in watcher.buffer] == [("ADDED", "a")]


async def test_an_object_that_leaves_the_selection_is_deleted_for_its_watcher(
    store: Store,
) -> None:
    first = store.create(PODS, thing("a", spec={"nodeName": "n1"}))
    watcher = store.log(PODS).follow(first.rv, lambda r: r.fields == ("n1",))
    assert watcher is not None
    moved = store.replace(first, thing("a", spec={"nodeName": "n2"}))
    back = store.replace(moved, thing("a", spec={"nodeName": "n1"}))
    await store.durable(back)
    seen = [(kind, r.rv, r.obj()["metadata"]["resourceVersion"]) for kind, r in watcher.buffer]
    assert seen == [
        ("DELETED", moved.rv, str(moved.rv)),
        ("ADDED", back.rv, str(back.rv)),
    ]


async def test_a_version_older_than_the_history_cannot_be_followed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localkube.apiserver.store.watch_log.HISTORY_EVENTS", 2)
    start = store.rv
    record = store.create(PODS, thing("a"))
    for number in range(4):
        record = store.replace(record, thing("a", spec={"n": number}))
    await store.durable(record)
    assert store.log(PODS).follow(start, None) is None
    assert store.log(PODS).follow(record.rv - 1, None) is not None


async def test_the_history_keeps_no_more_bytes_than_it_may(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects are up to 1.5 MiB large: thousands of changes of one would be gigabytes."""
    monkeypatch.setattr("localkube.apiserver.store.watch_log.HISTORY_BYTES", 50_000)
    record = store.create(PODS, thing("a"))
    start = record.rv
    for number in range(20):
        record = store.replace(record, thing("a", spec={"n": f"{number}" * 10_000}))
    await store.durable(record)
    log = store.log(PODS)
    assert log.follow(start, None) is None
    kept = log.since(log.compacted_rv)
    assert kept is not None
    assert 1 <= len(kept) <= 5
    assert log.follow(record.rv - 1, None) is not None


async def test_the_last_change_is_kept_however_large_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localkube.apiserver.store.watch_log.HISTORY_BYTES", 10)
    first = store.create(PODS, thing("a"))
    last = store.replace(first, thing("a", spec={}))
    await store.durable(last)
    watcher = store.log(PODS).follow(first.rv, None)
    assert watcher is not None
    assert [r.rv for _, r in watcher.buffer] == [last.rv]


async def test_a_watcher_that_falls_behind_is_cut_off(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localkube.apiserver.store.watch_log.WATCHER_BUFFER_BYTES", 300)
    watcher = store.log(PODS).follow(store.rv, None)
    assert watcher is not None
    for number in range(5):
        last = store.create(PODS, thing(f"p{number}"))
    await store.durable(last)
    assert watcher.cut
    assert not watcher.buffer


async def test_a_full_disk_refuses_the_write_and_keeps_what_was_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store.create(PODS, thing("a", spec={"nodeName": "n1"}))
    await store.durable(before)
    watcher = store.log(PODS).follow(before.rv, None)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(disk, "_commit", full)
    changed = store.replace(before, thing("a", spec={"nodeName": "n2"}))
    added = store.create(PODS, thing("b"))
    outcomes = await asyncio.gather(
        store.durable(changed), store.durable(added), return_exceptions=True
    )
    assert store.problem == "database or disk is full"
    assert [type(outcome) for outcome in outcomes] == [NotWritten, NotWritten]
    assert [r.body for r in store.records(PODS)] == [before.body]
    assert names(store.pods_on("n1")) == ["default/a"]
    assert store.version == before.rv, "what never was must not be named either"
    monkeypatch.undo()
    again = store.create(PODS, thing("b"))
    assert again.rv > added.rv
    await store.durable(again)
    assert watcher is not None
    assert [(kind, r.rv) for kind, r in watcher.buffer] == [("ADDED", again.rv)]


async def test_whoever_looks_waits_until_what_they_see_is_on_disk(store: Store) -> None:
    first = store.create(PODS, thing("a"))
    second = store.create(PODS, thing("b"))
    looks = [asyncio.ensure_future(store.settled(r.rv)) for r in (second, first)]
    assert store.version == second.rv > store.published_rv
    await asyncio.gather(*looks)
    assert store.published_rv == second.rv
    await store.settled(first.rv)


async def test_whoever_looked_at_what_never_was_is_told_to_look_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(disk, "_commit", full)
    seen = store.create(PODS, thing("a"))
    with pytest.raises(NotWritten):
        await store.settled(seen.rv)
    await store.settled(store.version)


async def test_a_disk_that_refuses_at_the_end_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store.db", selectable)
    store.start()
    kept = store.create(PODS, thing("kept"))
    await store.durable(kept)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(disk, "_commit", full)
    store.remove(kept)
    store.create(PODS, thing("never"))
    await asyncio.to_thread(store.close)
    monkeypatch.undo()
    again = Store(tmp_path / "store.db", selectable)
    assert names(again.records(PODS)) == ["default/kept"]
    again.close()


async def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = Store(path, selectable)
    store.start()
    for number in range(200):
        last = store.create(PODS, thing(f"p{number}", data="x" * 500))
    await store.durable(last)
    store.close()
    raw = bytearray(path.read_bytes())
    middle = raw.index(b"x" * 100, len(raw) // 2)
    raw[middle : middle + 16] = b"0123456789abcdef"
    path.write_bytes(raw)
    with pytest.raises(StoreDamaged, match=r"store\.db.*garbled.*delete the cluster"):
        Store(path, selectable)
    assert path.read_bytes() == bytes(raw), "the evidence must stay as it is"


def test_a_file_that_is_no_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"not a database at all, but quite long enough to look at" * 100)
    with pytest.raises(StoreDamaged, match="delete the cluster"):
        Store(path, selectable)


def test_a_file_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store(path, selectable).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreDamaged, match="wanted format 1 or older, found 99"):
        Store(path, selectable)


def test_a_second_server_on_the_same_file_is_refused(tmp_path: Path) -> None:
    first = Store(tmp_path / "store.db", selectable)
    with pytest.raises(StoreDamaged, match="in use by another process"):
        Store(tmp_path / "store.db", selectable)
    first.close()


async def test_pages_are_given_back_once_nothing_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not again before the next write."""
    monkeypatch.setattr(disk, "_IDLE_S", 0.01)
    loop, given = asyncio.get_running_loop(), asyncio.Queue[None]()
    give_back = disk._give_back

    def noted(db: sqlite3.Connection) -> None:
        give_back(db)
        loop.call_soon_threadsafe(given.put_nowait, None)

    monkeypatch.setattr(disk, "_give_back", noted)
    for name in ("a", "b", "c"):
        record = store.create(PODS, thing(name, spec={"x": "x" * 100_000}))
        await store.durable(record)
        await given.get()
    assert given.empty()
    assert names(store.records(PODS)) == ["default/a", "default/b", "default/c"]
