"""Field sets: an algebra of paths, in FieldsV1."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.patch import field_set, path_element
from localkube.apiserver.patch.field_set import BadFields, FieldSet, from_json

ELEMENTS = ["f:a", "f:b", 'k:{"name":"c"}', 'v:"x"']


def members(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(field_set.paths(fields))


def from_members(paths: set[tuple[str, ...]]) -> FieldSet:
    tree: FieldSet = {}
    for path in paths:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return from_json(tree)


paths = st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=3).map(tuple)
sets = st.sets(paths, max_size=6)


@given(sets)
def test_a_set_is_the_paths_in_it(some: set[tuple[str, ...]]) -> None:
    fields = from_members(some)
    assert members(fields) == some
    assert from_json(orjson.loads(orjson.dumps(fields))) == fields


@given(sets, sets)
def test_the_algebra_is_that_of_sets_of_paths(
    one: set[tuple[str, ...]], other: set[tuple[str, ...]]
) -> None:
    a, b = from_members(one), from_members(other)
    before = orjson.dumps([a, b])
    assert members(field_set.union(a, b)) == one | other
    assert members(field_set.difference(a, b)) == one - other
    assert members(field_set.intersection(a, b)) == one & other
    assert field_set.covers(a, b) == (one >= other)
    assert orjson.dumps([a, b]) == before


@given(sets, sets)
def test_equal_sets_are_spelt_alike(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> None:
    both = field_set.union(from_members(one), from_members(other))
    assert orjson.dumps(both) == orjson.dumps(from_members(one | other))


def test_elements_are_kept_in_the_order_of_a_real_server() -> None:
    ports = ['k:{"port":80,"protocol":"TCP"}', 'k:{"port":443,"protocol":"TCP"}']
    fields: FieldSet = {element: {} for element in [ports[1], ".", ports[0]]}
    assert list(field_set.in_order(fields)) == [".", *ports]
    assert list(field_set.in_order({"v:10": {}, "v:9": {}, 'v:"a"': {}})) == [
        "v:9",
        "v:10",
        'v:"a"',
    ]


def test_paths_read_as_in_error_messages() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"c","port":80}', "f:env", 'v:"x"', "i:0")
    assert field_set.path_text(path) == '.spec.containers[name="c",port=80].env[="x"][0]'


def test_what_a_client_spells_otherwise_is_put_right() -> None:
    sent: Any = {'k:{ "b": 1, "a": 2 }': {}, "f:x": {".": {}}, "f:n": None, "z:future": {}}
    assert from_json(sent) == {"f:n": {}, "f:x": {}, 'k:{"a":2,"b":1}': {}}
    assert from_json(None) == {}


@pytest.mark.parametrize(
    "fields", [{"zz": {}}, {"f": {}}, {"k:[]": {}}, {"k:{": {}}, {"i:x": {}}, {"f:a": []}, []]
)
def test_what_is_no_set_of_fields_is_refused(fields: Any) -> None:
    with pytest.raises(BadFields):
        from_json(fields)


def test_keys_are_escaped_as_go_does() -> None:
    assert path_element.of_key("name", "a<b>&c") == r'k:{"name":"a\u003cb\u003e\u0026c"}'
    assert path_element.of_value(1) != path_element.of_value(True)
