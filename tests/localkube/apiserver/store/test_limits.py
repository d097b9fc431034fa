"""What the store refuses, whatever the rest of the server lets through."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.store import store as store_module
from localkube.apiserver.store import watch_log
from localkube.apiserver.store.store import Store, TooLarge


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(tmp_path / "store.db", lambda resource: ())
    opened.start()
    yield opened
    opened.close()


def _thing(text: str) -> Obj:
    return {"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "data": {"text": text}}


async def test_a_large_object_is_refused_and_leaves_no_trace(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "OBJECT_BYTES", 200)
    with pytest.raises(TooLarge):
        store.create("configmaps", _thing("x" * 200))
    assert store.get("configmaps", "ns", "a") is None
    small = store.create("configmaps", _thing("x"))
    with pytest.raises(TooLarge):
        store.replace(small, _thing("x" * 200))
    assert store.get("configmaps", "ns", "a") is small
    await store.durable(small)


async def test_a_list_of_an_older_version_is_what_was_there_then(store: Store) -> None:
    first = store.create("configmaps", _thing("1"))
    second = store.replace(first, _thing("2"))
    other = store.create("configmaps", _thing("3") | {"metadata": {"name": "b", "uid": "v"}})
    store.remove(second)
    versions = [first.rv - 1, first.rv, second.rv, other.rv, store.rv]
    found = [store.records_at("configmaps", None, rv) for rv in versions]
    assert found == [[], [first], [second], [other, second], [other]]
    await store.durable(other)


async def test_an_older_list_is_of_one_namespace_if_asked(store: Store) -> None:
    first = store.create("configmaps", _thing("1"))
    store.create("configmaps", _thing("3") | {"metadata": {"name": "b", "uid": "v"}})
    last = store.remove(first)
    assert store.records_at("configmaps", "ns", first.rv) == [first]
    assert store.records_at("configmaps", "", first.rv) == []
    await store.durable(last)


async def _changed(store: Store, texts: list[str]) -> list[int]:
    """Versions of one object that holds these texts, one after the other."""
    record = store.create("configmaps", _thing(""))
    versions = []
    for text in texts:
        record = store.replace(record, _thing(text))
        versions.append(record.rv)
    await store.durable(record)
    return versions


async def test_a_large_history_is_kept_while_it_is_fresh(store: Store) -> None:
    text = "x" * (watch_log.CALM_BYTES // 4)
    first, *_, last = await _changed(store, [text] * 8)
    assert store.forget_stale(0.0) == 0
    assert store.forget_stale(watch_log.FRESH_S - 1) == 0
    assert store.log("configmaps").since(first) is not None
    assert store.forget_stale(watch_log.FRESH_S) > 0
    log = store.log("configmaps")
    assert log.since(first) is None
    assert log.since(last) == []
    assert log.follow(first, None) is None
    assert log.follow(last, None) is not None


async def test_what_came_later_is_fresh_for_as_long(store: Store) -> None:
    text = "x" * (watch_log.CALM_BYTES // 4)
    (old,) = await _changed(store, [text * 5])
    store.forget_stale(0.0)
    record = store.get("configmaps", "ns", "a")
    assert record is not None
    for _ in range(8):
        record = store.replace(record, _thing(text))
    await store.durable(record)
    store.forget_stale(watch_log.FRESH_S)
    found = store.log("configmaps").since(old)
    assert found is not None
    assert len(found) == 8


async def test_a_small_history_is_kept_however_old_it_is(store: Store) -> None:
    first, *_ = await _changed(store, ["1", "2"])
    for hours in range(5):
        assert store.forget_stale(hours * 3600.0) == 0
    assert store.log("configmaps").since(first) is not None
