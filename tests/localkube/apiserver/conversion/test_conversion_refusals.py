"""What goes wrong between the API server and a conversion webhook, in Kubernetes' words."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from kubeclient.objects import Obj
from kubeclient.resources import PODS
from localkube.apiserver.conversion import convert
from tests.localkube.apiserver.conversion.converting import (
    NEW,
    OLD,
    Answering,
    a_registry,
    by_webhook,
    person,
    renamed,
    sensible,
    success,
)

HEAD = "conversion webhook for example.com/v1, Kind=Person"


def changed(**metadata: object) -> Answering:
    def answer(request: Obj) -> Obj:
        made = sensible(request)
        for obj in made["convertedObjects"]:
            obj["metadata"] = obj["metadata"] | metadata
        return made

    return answer


def with_(**fields: object) -> Answering:
    def answer(request: Obj) -> Obj:
        objects = sensible(request)["convertedObjects"]
        return success([obj | fields for obj in objects])

    return answer


def failed(**result: str) -> Answering:
    return lambda _: {"convertedObjects": [], "result": result}


REFUSED: dict[str, tuple[Answering, str]] = {
    "a refusal": (failed(status="Failure", message="no such name"), " failed: no such name"),
    "a failure without words": (
        failed(status="Failure"),
        " failed: response.result.status was 'Failure', not 'Success'",
    ),
    "no objects": (lambda _: success([]), " returned 0 objects, expected 1"),
    "the uid of another": (
        lambda _: success([]) | {"uid": "x"},
        ' failed: expected response.uid="',
    ),
    "another version": (
        with_(apiVersion="example.com/v3"),
        " returned invalid object at index 0: invalid groupVersion "
        "(expected example.com/v1beta1, received example.com/v3)",
    ),
    "another kind": (
        with_(kind="Dog"),
        " returned invalid object at index 0: invalid kind (expected Person, received Dog)",
    ),
    "no object": (lambda _: success([None]), " returned invalid object at index 0: Object 'Kind'"),
    "another name": (
        changed(name="eve"),
        " returned invalid object: must have the same name: ada != eve",
    ),
    "another namespace": (
        changed(namespace="x"),
        " returned invalid object: must have the same namespace: ns != x",
    ),
    "another uid": (changed(uid=""), " returned invalid object: must have the same UID: "),
    "a bad label": (
        changed(labels={"a b": "c"}),
        ' returned invalid metadata: metadata.labels: Invalid value: "a b": ',
    ),
    "a label that is no text": (
        changed(labels={"a": 1}),
        " returned invalid metadata: metadata.labels[a] must be a string, but is int64",
    ),
    "labels that are no map": (
        changed(labels=[]),
        " returned invalid metadata: invalid metadata.labels of type []interface {} in",
    ),
    "an error of the server": (
        lambda _: web.Response(status=500, text="oops"),
        ' failed: an error on the server ("oops") has prevented the request from succeeding',
    ),
    "another document": (
        lambda _: web.json_response({"kind": "Pod", "apiVersion": "v1"}),
        " failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, "
        "got v1, Kind=Pod",
    ),
    "a list": (lambda _: web.json_response([]), " failed: expected webhook response of"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_bad_answer_is_an_error_that_says_why(tmp_path: Path, name: str) -> None:
    answering, words = REFUSED[name]
    async with a_registry(tmp_path, convert=answering) as registry:
        await registry.define()
        await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        for reading in (registry.kube.get(OLD, "ada", "ns"), registry.kube.list(OLD)):
            code, text = await registry.refusal(reading)
            assert code == 500
            assert text.startswith(HEAD + words), text
        assert (await registry.kube.get(NEW, "ada", "ns"))["spec"]["first"] == "Ada"


async def test_what_a_webhook_may_not_change_stays(tmp_path: Path) -> None:
    rogue = changed(
        labels={"by": "webhook"}, finalizers=["x/y"], resourceVersion="7", generation=99
    )
    async with a_registry(tmp_path, convert=rogue) as registry:
        await registry.define()
        made = await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        found = (await registry.kube.get(OLD, "ada", "ns"))["metadata"]
    assert found == made["metadata"] | {"labels": {"by": "webhook"}}


async def test_a_write_that_cannot_be_converted_writes_nothing(tmp_path: Path) -> None:
    async with a_registry(tmp_path, convert=failed(status="Failure", message="no")) as registry:
        await registry.define()
        code, text = await registry.refusal(registry.kube.create(OLD, person("v1beta1", full="A")))
        head = "conversion webhook for example.com/v1beta1, Kind=Person"
        assert (code, text) == (500, f"{head} failed: no")
        assert not (await registry.kube.list(NEW)).items


async def test_a_webhook_that_cannot_be_reached_ends_no_other_request(tmp_path: Path) -> None:
    async with a_registry(tmp_path) as registry:
        await registry.define()
        await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        nowhere = by_webhook(registry.webhook, "convert")
        nowhere["webhook"]["clientConfig"] = {
            "service": {"namespace": "ns", "name": "hook", "path": "/convert"}
        }
        await registry.redefine(nowhere)
        code, text = await registry.refusal(registry.kube.get(OLD, "ada", "ns"))
        url = "https://hook.ns.svc:443/convert?timeout=30s"
        assert code == 500
        assert text == f'{HEAD} failed: Post "{url}": service "hook" not found'
        assert [event async for event in registry.events(OLD)] == [("ERROR", text)]
        assert not (await registry.kube.list(PODS)).items


async def test_a_slow_webhook_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "_TIMEOUT_S", 1)
    asked = asyncio.Event()

    async def never(_: Obj) -> Obj:
        asked.set()
        return await asyncio.Future()

    async with a_registry(tmp_path, convert=never) as registry:
        await registry.define()
        await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        code, text = await registry.refusal(registry.kube.get(OLD, "ada", "ns"))
    assert asked.is_set()
    assert code == 500
    assert text.endswith('?timeout=1s": context deadline exceeded')


async def test_the_first_version_of_reviews_that_both_know_is_spoken(tmp_path: Path) -> None:
    async with a_registry(tmp_path) as registry:
        await registry.define(versions=("v9", "v1"))
        await registry.kube.create(NEW, person("v1", first="Ada", last="L"))
        assert (await registry.kube.get(OLD, "ada", "ns"))["spec"] == {"name": "Ada L"}


async def test_objects_of_many_bytes_are_converted_in_several_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "_CALL_BYTES", 1000)
    async with a_registry(tmp_path) as registry:
        await registry.define()
        for name in ("a", "b", "c"):
            await registry.kube.create(NEW, person("v1", name=name, first=name * 700, last="x"))
        found = (await registry.kube.list(OLD)).items
        assert [each["spec"]["name"][0] for each in found] == ["a", "b", "c"]
        assert registry.calls == 3


def test_the_sensible_webhook_is_its_own_inverse() -> None:
    new = person("v1", first="Ada", last="L")
    assert renamed(renamed(new, "example.com/v1beta1"), "example.com/v1") == new
