"""Lists of many custom objects, converted by a webhook: in calls that it can answer, in turns."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import orjson
import pytest

from bench.heavy.bodies import wide_schema
from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import ClusterView
from localkube.apiserver.admission.webhook_config import Callee
from localkube.apiserver.conversion import convert
from localkube.apiserver.conversion.convert import Conversions
from localkube.apiserver.custom import kind_of
from localkube.apiserver.kinds import Kind
from localkube.apiserver.store.record import Record
from tests.faults.loop_watchdog import Watchdog
from tests.localkube.apiserver.admission.small_cluster import a_cluster
from tests.localkube.apiserver.conversion.converting import definition, sensible

_T = TypeVar("_T")


class _Client:
    def __init__(self) -> None:
        self.calls: list[int] = []

    async def post(
        self, callee: Callee, document: Obj, cluster: ClusterView, read: Callable[[Any], _T]
    ) -> _T:
        request = document["request"]
        self.calls.append(len(request["objects"]))
        response = sensible(request) | {"uid": request["uid"]}
        head = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
        return read(head | {"response": response})


@pytest.fixture
def client() -> _Client:
    return _Client()


@pytest.fixture
def conversions(client: _Client) -> Conversions:
    made = Conversions(a_cluster(), client)
    made.replace("people.example.com", _crd())
    return made


def _crd() -> Obj:
    webhook = {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]}
    return definition({"strategy": "Webhook", "webhook": webhook})


def _kind(version: str) -> Kind:
    crd = _crd()
    (document,) = [each for each in crd["spec"]["versions"] if each["name"] == version]
    return kind_of(crd, document)


def _records(count: int, labels: int = 0) -> Iterator[Record]:
    marks = {f"k{number}": "" for number in range(labels)}
    for number in range(count):
        name = f"p{number}"
        obj = {
            "apiVersion": "example.com/v1",
            "kind": "Person",
            "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": marks},
            "spec": {"first": "a", "last": "b"},
        }
        body = orjson.dumps(obj)
        yield Record(number, "people.example.com", "ns", name, name, number, marks, (), body)


async def test_a_call_has_as_many_values_as_its_answer_may_have(
    client: _Client, conversions: Conversions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "_CALL_VALUES", 200)
    served = await conversions.served(list(_records(10, labels=50)), _kind("v1beta1"))
    assert [record.obj()["spec"]["name"] for record in served] == ["a b"] * 10
    assert client.calls == [3, 3, 3, 1]


async def test_the_schema_of_a_large_kind_is_made_aside(client: _Client) -> None:
    crd = _crd()
    groups = {f"g{number}": wide_schema(100) for number in range(300)}
    for version in crd["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"] |= groups
    conversions = Conversions(a_cluster(), client)
    conversions.replace("people.example.com", crd)

    async def look() -> None:
        await conversions.served(list(_records(1)), _kind("v1beta1"))

    with Watchdog().watching() as watchdog:
        await asyncio.ensure_future(look())
    assert not watchdog.stalls, "\n".join(watchdog.stalls)
    assert client.calls == [1]


async def test_many_objects_that_need_no_webhook_leave_the_loop_to_others(
    client: _Client, conversions: Conversions
) -> None:
    records = list(_records(40_000, labels=20))

    async def look() -> None:
        assert len(await conversions.served(records, _kind("v1"))) == len(records)

    with Watchdog().watching() as watchdog:
        await asyncio.ensure_future(look())
    assert not watchdog.stalls, "\n".join(watchdog.stalls)
    assert not client.calls
