"""The fast check and the slow one agree."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubeclient import quantity
from localkube.apiserver.kinds import Kind, builtin_kinds
from localkube.apiserver.schema.check import check
from localkube.apiserver.schema.fast import is_clean
from localkube.apiserver.schema.load import schema_of
from localkube.apiserver.schema.node import Schema, Type

SCALARS: dict[Type, st.SearchStrategy[Any]] = {
    Type.STRING: st.sampled_from(["", "a"]),
    Type.BYTES: st.sampled_from(["", "YQ==", "YQ=", "?", "YW\nJj"]),
    Type.TIME: st.sampled_from(["2020-01-02T03:04:05Z", "2020-01-02T03:04:05.000006Z", "x"]),
    Type.INTEGER: st.sampled_from([0, 1, -1, 2**31, 2**63]),
    Type.NUMBER: st.sampled_from([0, 1.5]),
    Type.BOOLEAN: st.booleans(),
    Type.INT_OR_STRING: st.sampled_from([0, "50%"]),
    Type.QUANTITY: st.sampled_from(["1", "1.5Gi", "1e3", ".5", "1.", "x", 1, 0.5]),
    Type.ANY: st.sampled_from([{}, {"a": None}]),
}
WRONG: st.SearchStrategy[Any] = st.sampled_from([None, 5, 1.5, "s", True, [], {}, {"a": 1}])


def _values(schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    """Mostly fitting values, some not."""
    if schema.type in SCALARS:
        return SCALARS[schema.type] | WRONG
    if depth == 0:
        return st.just([] if schema.type is Type.LIST else {})
    if schema.type is Type.OBJECT:
        fields = {name: _values(field, depth - 1) for name, field in schema.fields.items()}
        fields["unheardOf"] = WRONG
        names = st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True)
        return names.flatmap(lambda chosen: st.fixed_dictionaries({n: fields[n] for n in chosen}))
    assert schema.items is not None
    inner = _values(schema.items, depth - 1) | WRONG
    if schema.type is Type.LIST:
        return st.lists(inner, max_size=2)
    return st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)


def _kind_and_object(kind: Kind) -> st.SearchStrategy[tuple[Schema, Any]]:
    schema = schema_of(kind.group, kind.version, kind.kind)
    return st.tuples(st.just(schema), _values(schema, 4))


KIND_NAMES = ["configmaps", "pods", "leases", "resourcequotas", "customresourcedefinitions"]
SOME = [kind for kind in builtin_kinds() if kind.plural in KIND_NAMES and not kind.virtual]


@given(st.sampled_from(SOME).flatmap(_kind_and_object))
def test_what_the_fast_check_passes_the_slow_one_leaves_alone(drawn: tuple[Schema, Any]) -> None:
    schema, obj = drawn
    if is_clean(obj, schema):
        before = copy.deepcopy(obj)
        problems = check(obj, schema)
        assert (problems.error, problems.unknown, obj) == ("", [], before)


@given(st.sampled_from(SOME).flatmap(_kind_and_object))
def test_a_checked_object_passes_the_next_check(drawn: tuple[Schema, Any]) -> None:
    schema, obj = drawn
    if not check(obj, schema).error:
        before = copy.deepcopy(obj)
        problems = check(obj, schema)
        assert (problems.error, problems.unknown, obj) == ("", [], before)


@given(st.text("019.eEkKmMiGnq+-", max_size=6))
def test_a_quantity_that_the_fast_check_passes_is_one(text: str) -> None:
    obj = {"spec": {"hard": {"pods": text}}}
    if is_clean(obj, schema_of("", "v1", "ResourceQuota")):
        assert quantity.parse(text).text
