"""Conversion webhooks that lie at length: their errors are short, and little of theirs is kept."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.conversion import convert
from localkube.apiserver.conversion.kept import Kept
from localkube.apiserver.store.record import Record, record_of
from tests.localkube.apiserver.conversion.converting import (
    NEW,
    OLD,
    Answering,
    a_registry,
    person,
    sensible,
    success,
)


def _with(**fields: Any) -> Answering:
    return lambda request: success(
        [obj | fields for obj in sensible(request)["convertedObjects"]],
    )


def _named(**metadata: Any) -> Answering:
    def answer(request: Obj) -> Obj:
        objects = sensible(request)["convertedObjects"]
        return success([obj | {"metadata": obj["metadata"] | metadata} for obj in objects])

    return answer


def _failed(**result: Any) -> Answering:
    return lambda _: {"convertedObjects": [], "result": result}


_LIES: dict[str, Answering] = {
    "a long refusal": _failed(status="Failure", message="x" * 2_000_000),
    "a refusal that is a list": _failed(status="Failure", message=["x"] * 50_000),
    "a long status": _failed(status="x" * 2_000_000),
    "a uid that is a list": lambda _: success([]) | {"uid": [1] * 90_000},
    "a long kind": _with(kind="K" * 1_000_000),
    "a version that is a list": _with(apiVersion=["x"] * 80_000),
    "a long name": _named(name="x" * 1_000_000),
    "a name that is a list": _named(name=["x"] * 80_000),
    "20,000 bad labels": _named(labels={f"k {n}": "v v" for n in range(20_000)}),
}


@pytest.mark.parametrize("name", _LIES)
async def test_an_error_repeats_only_the_beginning_of_a_lie(tmp_path: Path, name: str) -> None:
    async with a_registry(tmp_path, convert=_LIES[name]) as registry:
        await registry.define()
        await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        calls = (
            registry.kube.get(OLD, "ada", "ns"),
            registry.kube.list(OLD),
            registry.kube.create(OLD, person("v1beta1", "bob", full="B")),
        )
        for call in calls:
            code, text = await registry.refusal(call)
            assert (code, len(text) < 5_000) == (500, True)
            assert text.startswith("conversion webhook for example.com/v1")
            assert text.endswith(" characters)")
        assert [each["metadata"]["name"] for each in (await registry.kube.list(NEW)).items] == [
            "ada"
        ]


def _record(name: str, size: int, rv: int = 1) -> Record:
    obj = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "x": "x" * size}
    return record_of(obj, row=1, resource="people.example.com", rv=rv, selectable=())


def test_the_latest_eight_megabytes_are_kept() -> None:
    kept, records = Kept(), [_record(f"p{n}", 200_000) for n in range(100)]
    for record in records:
        kept.put(record, record, "v1")
        kept.put(record, record, "v1")  # another request has asked at the same time
    there = [record.name for record in records if kept.get(record, "v1") is not None]
    assert there == [f"p{n}" for n in range(100 - len(there), 100)]
    assert 7 << 20 < sum(len(r.body) for r in records if kept.get(r, "v1")) <= 8 << 20


def test_of_small_ones_two_thousand_are_kept_and_no_large_one() -> None:
    kept, small = Kept(), [_record(f"p{n}", 10) for n in range(3_000)]
    large = _record("large", 300_000)
    for record in [*small, large]:
        kept.put(record, record, "v1")
    assert sum(kept.get(record, "v1") is not None for record in small) == 2048
    assert kept.get(large, "v1") is None
    assert kept.get(small[-1], "v1beta1") is None


def test_another_object_of_the_same_version_is_not_taken_for_it() -> None:
    kept, first, second = Kept(), _record("a", 1), _record("a", 2)
    kept.put(first, first, "v1")
    assert kept.get(second, "v1") is None


async def test_a_webhook_that_never_answers_holds_a_part_of_all_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "MOST_WAITING", 3)
    release, asked = asyncio.Event(), asyncio.Queue[None]()

    async def late(request: Obj) -> Obj:
        asked.put_nowait(None)
        await release.wait()
        return sensible(request)

    async with a_registry(tmp_path, convert=late) as registry:
        await registry.define()
        waiting = [
            asyncio.create_task(registry.kube.create(OLD, person("v1beta1", f"p{n}", full="A B")))
            for n in range(3)
        ]
        for _ in waiting:
            await asked.get()
        more = registry.kube.create(OLD, person("v1beta1", "more", full="A B"))
        code, text = await registry.refusal(more)
        assert code == 429
        assert text.startswith("3 requests wait for the conversion webhook of people.example.com")
        await registry.kube.create(NEW, person("v1", "direct", first="A", last="B"))
        release.set()
        await asyncio.gather(*waiting)
        await registry.kube.create(OLD, person("v1beta1", "later", full="A B"))


async def test_watches_take_no_place_of_writes_and_are_never_cut_off_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many watchers hear of a change at once; each has its place among the watches already."""
    monkeypatch.setattr(convert, "MOST_WAITING", 1)
    release, asked = asyncio.Event(), asyncio.Queue[None]()

    async def late(request: Obj) -> Obj:
        asked.put_nowait(None)
        await release.wait()
        return sensible(request)

    async with a_registry(tmp_path, convert=late) as registry, asyncio.timeout(60):
        await registry.define()
        await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        watches = [registry.events(OLD) for _ in range(3)]
        heard = [asyncio.ensure_future(anext(watch)) for watch in watches]
        for _ in heard:
            await asked.get()
        written = asyncio.create_task(
            registry.kube.create(OLD, person("v1beta1", "bob", full="B C"))
        )
        await asked.get()
        release.set()
        assert {type_ for type_, _ in await asyncio.gather(*heard)} == {"ADDED"}
        await written
        for watch in watches:
            await watch.aclose()
