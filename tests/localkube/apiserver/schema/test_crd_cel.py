"""Rules that CRDs bring along in CEL."""

from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.cel.expressions import Exhausted
from localkube.apiserver.schema.crd_cel import UNCHECKED, broken_rules, complaint, rules_of
from localkube.apiserver.schema.structural import compile_crd_version


def _broken(schema: Obj, value: Any, *old: Any) -> list[tuple[str, str]]:
    node = rules_of(schema)
    assert node is not None
    return [(error.field, error.message) for error in broken_rules(node, value, *old)]


def _with(rule: str, **more: Any) -> Obj:
    return {"x-kubernetes-validations": [{"rule": rule, **more}]}


def test_a_schema_without_rules_has_none() -> None:
    assert rules_of({"properties": {"a": {"items": {"type": "string"}}}}) is None


@pytest.mark.parametrize(
    ("schema", "value", "broken"),
    [
        (_with("self > 1"), 2, []),
        (_with("self > 1"), 1, [("<nil>", "Invalid value: 1: failed rule: self > 1")]),
        (
            {"properties": {"a": _with("self.b <= self.c", message="too much")}},
            {"a": {"b": 2, "c": 1}},
            [("a", "Invalid value: too much")],
        ),
        (
            {"items": _with("self != ''", reason="FieldValueRequired", message="say something")},
            ["x", ""],
            [("[1]", "Required value: say something")],
        ),
        (
            {"additionalProperties": _with("self < 3", reason="FieldValueForbidden")},
            {"k": 3},
            [("k", "Forbidden: failed rule: self < 3")],
        ),
        (
            _with("has(self.a)", fieldPath=".a", reason="FieldValueRequired", message="is missing"),
            {},
            [("a", "Required value: is missing")],
        ),
    ],
)
def test_a_rule_is_judged_where_it_stands(
    schema: Obj, value: Any, broken: list[tuple[str, str]]
) -> None:
    assert _broken(schema, value) == broken


def test_a_rule_about_change_needs_something_to_change() -> None:
    schema = _with("self == oldSelf", message="is fixed")
    assert _broken(schema, 1) == []
    assert _broken(schema, 1, 1) == []
    assert _broken(schema, 2, 1) == [("<nil>", "Invalid value: 2: is fixed")]


def test_a_rule_about_what_is_not_there_says_so() -> None:
    found = _broken(_with("self.name != ''", message="needs a name"), {})
    why = "no such key: name evaluating rule: needs a name"
    assert found == [("<nil>", f'Invalid value: "object": {why}')]


def test_items_with_keys_have_a_past_and_others_have_none() -> None:
    fixed = {"properties": {"n": _with("self == oldSelf", message="is fixed")}}
    keyed = {"items": fixed, "x-kubernetes-list-map-keys": ["k"]}
    old, new = [{"k": "a", "n": 1}, {"k": "b", "n": 2}], [{"k": "b", "n": 3}, {"k": "c", "n": 4}]
    assert _broken(keyed, new, old) == [("[0].n", "Invalid value: 3: is fixed")]
    assert _broken({"items": fixed}, new, old) == []


def test_what_cannot_be_judged_is_passed_over() -> None:
    assert complaint("isURL(self)") == "uses isURL"
    assert complaint("self >").startswith("syntax: ")
    assert _broken(_with("isURL(self)"), "x") == []


def test_an_optional_past_is_judged_where_there_is_none() -> None:
    rule = "!oldSelf.hasValue() || oldSelf.value() <= self"
    schema = _with(rule, optionalOldSelf=True, message="only grows")
    assert _broken(schema, 1) == []
    assert _broken(schema, 2, 1) == []
    assert _broken(schema, 1, 2) == [("<nil>", "Invalid value: 1: only grows")]


def test_a_rule_has_a_limit() -> None:
    rule = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d != 'z'))))"
    ((_, said),) = _broken(_with(rule, message="no z"), [str(number) for number in range(100)])
    assert said == (
        "Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded' no further "
        "validation rules will be run due to call cost exceeds limit for rule: no z"
    )


def test_all_rules_have_a_limit_together() -> None:
    rule = _with("self.all(a, self.all(b, a + b != 'z'))")
    node = rules_of({"items": rule})
    assert node is not None
    lists = [[str(number) for number in range(50)]] * 5
    assert broken_rules(node, lists) == []
    with pytest.raises(Exhausted):
        broken_rules(node, lists, budget=50_000)


def test_rules_wait_until_the_rest_is_in_order() -> None:
    fields = {"n": {"type": "integer", "maximum": 5, **_with("self > 1", message="more")}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    names = {"kind": "Foo", "plural": "foos"}
    document = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}
    version = compile_crd_version({"spec": {"names": names, "versions": [document]}}, "v1")
    errors = version.validate({"spec": {"n": "x"}})
    assert UNCHECKED in errors
    assert [error.field for error in version.validate({"spec": {"n": 1}})] == ["spec.n"]
    assert [error.field for error in version.validate({"spec": {"n": 6}})] == ["spec.n"]


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("max-size", "max__dash__size"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("namespace", "__namespace__"),
        ("a__b", "a__underscores__b"),
        ("a__dash__b", "a__dash__b"),  # as it stands, too
        ("a__other__b", "a__other__b"),
    ],
)
def test_fields_that_are_no_names_are_spelt_out(name: str, spelt: str) -> None:
    assert _broken(_with(f"self.{spelt} == 3"), {name: 3}) == []
    assert _broken(_with(f"has(self.{spelt})"), {name: 3}) == []
    assert _broken(_with(f"self.?{spelt}.orValue(1) == 3"), {name: 3}) == []
    ((_, said),) = _broken(_with(f"self.{spelt} == 3", message="no"), {})
    assert said == f'Invalid value: "object": no such key: {spelt} evaluating rule: no'
