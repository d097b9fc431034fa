"""Which fields a value has, and which changed: the walks along a schema."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.patch import field_set
from localkube.apiserver.patch.field_compare import compared, set_in
from localkube.apiserver.patch.field_set import LEAF, FieldSet
from localkube.apiserver.patch.field_walk import added, declared
from localkube.apiserver.patch.shape import root_of, shape_of
from tests.localkube.apiserver.patch.small_schemas import (
    CONTAINER,
    KIND,
    SPEC,
    THING,
    container,
    specs,
    thing,
    things,
)

ROOT = root_of(THING, KIND, "")


def members(fields: FieldSet | None) -> set[tuple[str, ...]]:
    return set(field_set.paths(fields or {}))


def test_a_new_thing_is_owned_with_all_that_is_in_it() -> None:
    value = container(
        "c", args=["a"], env=[], ports=[{"port": 443}, {"port": 80, "protocol": "UDP", "name": "p"}]
    )
    assert added(shape_of(CONTAINER), value) == {
        ".": {},
        "f:args": {},
        "f:env": {},
        "f:name": {},
        "f:ports": {
            ".": {},
            'k:{"port":80,"protocol":"UDP"}': {
                ".": {},
                "f:name": {},
                "f:port": {},
                "f:protocol": {},
            },
            'k:{"port":443,"protocol":"TCP"}': {".": {}, "f:port": {}},
        },
    }


def test_an_applied_thing_claims_what_it_sets_and_not_the_structs_around_it() -> None:
    config = thing(
        {
            "containers": [container("c", image="x", env=[])],
            "selector": {"a": "b"},
            "strategy": {},
            "extra": {"a": {"b": 1}},
        },
        labels={"a": "b"},
        finalizers=["x"],
    )
    assert declared(ROOT, config) == {
        "f:metadata": {"f:finalizers": {'v:"x"': {}}, "f:labels": {"f:a": {}}},
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}},
            "f:extra": {"f:a": {".": {}, "f:b": {}}},
            "f:selector": {},
            "f:strategy": {},
        },
    }


@pytest.mark.parametrize(
    ("old", "new", "changed", "gone"),
    [
        ({"replicas": 1}, {"replicas": 2}, {"f:replicas": {}}, None),
        ({}, {"replicas": 1}, {"f:replicas": {}}, None),
        ({"replicas": 1}, {}, None, {"f:replicas": {}}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "1"}}, {"f:selector": {}}, None),
        (
            {"containers": [container("c", image="x")]},
            {"containers": [container("c", image="y")]},
            {"f:containers": {'k:{"name":"c"}': {"f:image": {}}}},
            None,
        ),
        (
            {"containers": [container("c"), container("d")]},
            {"containers": [container("d"), container("c")]},
            None,
            None,
        ),
        (
            {"containers": [container("c")]},
            {"containers": [container("d")]},
            {"f:containers": {'k:{"name":"d"}': {".": {}, "f:name": {}}}},
            {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}},
        ),
        # Two of the same key are one thing to own.
        (
            {"containers": [container("c")]},
            {"containers": [container("c"), container("c", image="x")]},
            {"f:containers": {'k:{"name":"c"}': {}}},
            {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}},
        ),
        ({"extra": 1}, {"extra": {"a": 1}}, {"f:extra": {".": {}, "f:a": {}}}, None),
        ({"extra": [1]}, {"extra": [2]}, {"f:extra": {}}, None),
        ({"strategy": {}}, {"strategy": {"type": "R"}}, {"f:strategy": {"f:type": {}}}, None),
        ({}, {"strategy": {}}, {"f:strategy": {}}, None),
    ],
)
def test_changes_are_told_by_field(old: Any, new: Any, changed: Any, gone: Any) -> None:
    assert compared(shape_of(SPEC), old, new) == (changed, gone)


def test_nobody_owns_names_and_bookkeeping_and_what_a_request_cannot_set() -> None:
    old: Any = {"metadata": {}}
    new = {**thing({"replicas": 1}, uid="1", resourceVersion="2"), "status": {"phase": "P"}}
    assert compared(ROOT, old, new)[0] == {"f:spec": {".": {}, "f:replicas": {}}}
    by_status = root_of(THING, KIND, "status")
    assert compared(by_status, old, new)[0] == {"f:status": {".": {}, "f:phase": {}}}


@given(specs, specs)
def test_old_and_new_differ_in_what_is_told_and_nowhere_else(old: Any, new: Any) -> None:
    shape = shape_of(SPEC)
    changed, gone = (members(part) for part in compared(shape, old, new))
    before, after = members(added(shape, old)), members(added(shape, new))
    assert changed <= after
    assert gone <= before
    assert before - gone - changed == after - changed
    assert gone == members(compared(shape, new, old)[0]) - after


@given(specs)
def test_what_is_claimed_is_there(spec: Any) -> None:
    shape = shape_of(SPEC)
    assert field_set.covers(added(shape, spec), declared(shape, spec) or {})
    assert compared(shape, spec, orjson.loads(orjson.dumps(spec))) == (None, None)


@given(st.lists(things, min_size=2, max_size=4))
def test_remembered_shapes_and_shared_sets_stay_clean(objects: Any) -> None:
    first = [orjson.dumps(added(ROOT, obj)) for obj in objects]
    for obj in objects:
        compared(ROOT, objects[0], obj)
        declared(ROOT, obj)
    assert [orjson.dumps(added(ROOT, obj)) for obj in objects] == first
    assert LEAF == {}


def test_values_that_do_not_fit_their_schema_do_no_harm() -> None:
    odd = {"containers": [1, {}, {"name": {}}, None], "selector": 3, "strategy": "x", "extra": None}
    shape = shape_of(SPEC)
    assert added(shape, odd)["f:containers"] == {".": {}}
    for other in ({}, {"containers": {"a": 1}, "strategy": []}):
        compared(shape, odd, other)
        compared(shape, other, odd)
        declared(shape, odd)


@given(st.lists(things, min_size=1, max_size=4))
def test_what_is_set_in_a_new_thing_does_not_depend_on_the_things_before_it(
    made: list[Any],
) -> None:
    blank: dict[str, Any] = {"metadata": {}}
    for number, value in enumerate(made):
        value["metadata"]["uid"] = str(number)
        before = orjson.dumps(value)
        expected, _ = compared(ROOT, blank, value)

        assert set_in(ROOT, blank, value) == expected
        value["metadata"]["uid"] = "another"
        assert orjson.dumps(set_in(ROOT, blank, value)) == orjson.dumps(expected)
        value["metadata"]["uid"] = str(number)
        assert orjson.dumps(value) == before


def test_what_is_remembered_of_new_things_has_an_end() -> None:
    for number in range(2_000):
        set_in(ROOT, {"metadata": {}}, thing({"replicas": number}))
    set_in(ROOT, {"metadata": {}}, thing({"selector": {"a": "x" * 100_000}}))

    assert len(ROOT.created) <= 256
    assert max(map(len, ROOT.created)) < 20_000
