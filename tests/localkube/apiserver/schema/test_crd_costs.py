"""Rules of CRDs that could cost too much are refused when the CRD is written."""

import time
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.schema.crd_costs import cost_errors
from localkube.apiserver.schema.crd_rules import crd_schema_errors

_NESTED = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d != 'z'))))"


def _crd(rule: str, **more: Any) -> Obj:
    words = {"type": "array", "items": {"type": "string"}, **more}
    words["x-kubernetes-validations"] = [{"rule": rule}]
    schema = {"type": "object", "properties": {"words": words}}
    version = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"versions": [version]}}


def test_a_rule_that_could_run_for_ever_is_refused() -> None:
    errors = crd_schema_errors(_crd(_NESTED))
    place = "spec.validation.openAPIV3Schema.properties[words].x-kubernetes-validations[0].rule"
    assert errors[0].field == place
    assert errors[0].message.startswith(
        "Forbidden: estimated rule cost exceeds budget by factor of more than 100x ("
    )


def test_a_bound_in_the_schema_makes_it_cheap_enough() -> None:
    items = {"type": "string", "maxLength": 20}
    assert not crd_schema_errors(_crd(_NESTED, maxItems=8, items=items))


def test_what_was_stored_before_stays_until_it_changes() -> None:
    stored = _crd(_NESTED)
    renamed = _crd(_NESTED)
    renamed["spec"]["versions"][0]["name"] = "v2"
    assert not crd_schema_errors(renamed, stored)
    assert crd_schema_errors(_crd(_NESTED, description="other"), stored)


@pytest.mark.parametrize("bound", [-1, 0, 1 << 63, 1 << 70, 1e30, 2.5])
def test_absurd_bounds_are_only_numbers(bound: Any) -> None:
    list(cost_errors(_crd(_NESTED, maxItems=bound)["spec"]["versions"][0], "x"))
    schema = {
        "type": "object",
        "properties": {
            "a": {
                "type": "array",
                "maxItems": bound,
                "items": {"type": "string", "maxLength": bound},
            },
            "b": {
                "type": "object",
                "maxProperties": bound,
                "additionalProperties": {"type": "string"},
            },
        },
        "x-kubernetes-validations": [
            {"rule": "self.a.all(x, x.contains(x)) && self.b.all(k, self.b[k] == 'x')"},
            {"rule": "self.a.map(x, x.replace('', x)).map(x, x.replace('', x)).size() > 0"},
            {"rule": "lists.range(-9223372036854775808).all(x, true)"},
            {"rule": "self.a.slice(9223372036854775807, -5).size() > 0"},
        ],
    }
    list(cost_errors(schema, "x"))


def test_many_rules_on_many_levels_are_priced_in_time() -> None:
    """Twice as deep takes about twice as long, and not four times."""
    took = [min(_took(depth) for _ in range(3)) for depth in (40, 160)]
    assert took[1] < 10 * took[0]


def _took(depth: int) -> float:
    schema: Obj = {"type": "string"}
    for _ in range(depth):
        wide = {f"w{number}": {"type": "string"} for number in range(50)}
        rules = [{"rule": "self.inner == self.inner"}]
        schema = {
            "type": "object",
            "properties": {"inner": schema, **wide},
            "x-kubernetes-validations": rules,
        }
    start = time.thread_time()
    assert not list(cost_errors(schema, "x"))
    return time.thread_time() - start
