"""Other threads wait for each single call into C: the checks of a large kind are made in many."""

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import orjson
import pytest

from bench.heavy.bodies import CRDS, MERGE, Heavy, choices, crd_body, wide_schema
from kubeclient.objects import Obj
from localkube.apiserver import custom
from localkube.apiserver.custom import CustomKinds
from localkube.apiserver.kinds import Kinds, builtin_kinds
from localkube.apiserver.schema.node import Schema
from localkube.apiserver.status import ApiError
from tests.localkube.apiserver.stalls.watched import Watched
from tests.localkube.apiserver.validation import rules_subject
from tests.processor_speed import is_too_long


def _longest_s(step: Callable[[], object]) -> float:
    """Of all calls of msgspec; in processor time, without the garbage collector's."""
    longest_s, began_s = 0.0, 0.0

    def called(_: FrameType, event: str, function: Any) -> None:
        nonlocal longest_s, began_s
        if not event.startswith("c_") or "msgspec" not in str(function.__module__):
            return
        if event == "c_call":
            began_s = time.thread_time()
        else:
            longest_s = max(longest_s, time.thread_time() - began_s)

    gc.disable()
    sys.setprofile(called)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return longest_s


def test_the_checks_of_a_large_kind_are_made_piece_by_piece() -> None:
    groups = {f"g{number}": wide_schema(100) for number in range(300)}
    crd = orjson.loads(crd_body("wide", {"type": "object", "properties": groups}))
    kinds = CustomKinds(Kinds(builtin_kinds()))
    longest_s = _longest_s(lambda: kinds.prepare(crd))
    assert longest_s > 0
    assert not is_too_long(longest_s)


def _live(kind: type) -> int:
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())


def test_what_was_compiled_for_a_kind_goes_with_it() -> None:
    crd = orjson.loads(crd_body("wide", wide_schema(100)))
    kinds = CustomKinds(Kinds(builtin_kinds()))
    before = _live(Schema)
    prepared = kinds.prepare(crd)
    assert prepared is not None
    kinds.replace("wides.heavy.test", crd)
    del prepared
    assert _live(Schema) >= before + 100
    kinds.replace("wides.heavy.test", None)
    assert _live(Schema) == before


def test_what_was_prepared_goes_with_a_request_that_fails() -> None:
    crd = orjson.loads(crd_body("wide", wide_schema(100)))
    kinds = CustomKinds(Kinds(builtin_kinds()))
    before = _live(Schema)
    prepared = kinds.prepare(crd)
    assert _live(Schema) >= before + 100
    del prepared
    assert _live(Schema) == before


def test_two_large_kinds_are_prepared_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    crds = [orjson.loads(crd_body(name, wide_schema(100))) for name in ("one", "two")]
    kinds = CustomKinds(Kinds(builtin_kinds()))
    held = [kinds.prepare(crd) for crd in crds]
    monkeypatch.setattr(custom, "compile_crd_version", _not_again)
    for crd in crds:
        kinds.replace(crd["metadata"]["name"], crd)
    assert all(held)


def test_a_kind_is_compiled_once_and_not_when_its_status_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crd = orjson.loads(crd_body("wide", wide_schema(100)))
    rows = Kinds(builtin_kinds())
    kinds = CustomKinds(rows)
    kinds.replace("wides.heavy.test", crd)
    served = rows.generation
    monkeypatch.setattr(custom, "compile_crd_version", _not_again)
    condition = {"type": "Terminating", "status": "True"}
    terminating = crd | {"status": {"conditions": [condition]}}
    assert kinds.prepare(terminating) is None
    kinds.replace("wides.heavy.test", terminating)
    assert rows.generation == served
    kind = rows.find("heavy.test", "v1", "wides")
    assert kind is not None
    with pytest.raises(ApiError, match="terminating"):
        kinds.refuse_create(kind)


def _not_again(_: object, version: str) -> None:
    raise AssertionError(f"{version} was compiled again")


@pytest.mark.parametrize(
    "schema", [wide_schema(30_000), choices(90_000)], ids=["properties", "choices"]
)
async def test_a_large_kind_comes_changes_and_goes_without_keeping_the_loop(
    watched: Watched, schema: Obj
) -> None:
    path = f"{CRDS}/wides.heavy.test"
    labelled, freed = b'{"metadata":{"labels":{"a":"b"}}}', b'{"metadata":{"finalizers":null}}'
    for heavy in (
        Heavy("POST", CRDS, crd_body("wide", schema)),
        Heavy("PATCH", path, labelled, MERGE),
        Heavy("DELETE", path),
        Heavy("PATCH", path, freed, MERGE),
        Heavy("GET", "/openapi/v3"),
    ):
        status, answer = await watched.watched(heavy)
        assert status in (200, 201), answer[:500]
    assert (await watched.watched(Heavy("GET", "/apis/heavy.test/v1")))[0] == 404


@pytest.mark.parametrize("rules", [2_000, 6_000])
async def test_small_objects_of_a_kind_of_many_rules_do_not_keep_the_loop(
    watched: Watched, rules: int
) -> None:
    """Thousands of rules fill the cache of compiled ones, and each write compiled all anew."""
    texts = [f"self != {number + 5} || self < {number}" for number in range(rules)]
    schema = {"type": "integer", "x-kubernetes-validations": [{"rule": text} for text in texts]}
    assert (await watched.watched(Heavy("POST", CRDS, crd_body("ruled", schema))))[0] == 201
    path = "/apis/heavy.test/v1/namespaces/default/ruleds"
    head = {"apiVersion": "heavy.test/v1", "kind": "Ruled"}
    for number, value in enumerate((1, 1, 7)):
        body = orjson.dumps({**head, "metadata": {"name": f"r{number}"}, "spec": value})
        status, answer = await watched.watched(Heavy("POST", path, body))
        # 7 breaks one rule: it is not other than 7, nor is it below 2.
        assert status == (422 if value == 7 else 201), answer[:500]


def test_a_kind_of_very_many_versions_is_refused() -> None:
    crd = orjson.loads(crd_body("wide", wide_schema(1)))
    crd |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    (first,) = crd["spec"]["versions"]
    others = [first | {"name": f"v{number}", "storage": False} for number in range(2, 102)]
    crd["spec"]["versions"] = [first, *others]
    said = [f"{field}: {message}" for _, field, message in rules_subject.created(crd)]
    assert "spec.versions: Too many: 101: must have at most 100 items" in said
