"""What rules may cost, and which are too dear: as kube-apiserver has it (record_costs.py)."""

import json
from pathlib import Path
from typing import Any

import pytest

from localkube.apiserver.cel.estimate import estimated
from localkube.apiserver.schema.crd_costs import cost_errors, shape_of
from tests.localkube.apiserver.cel.rule_budgets import SCHEMAS
from tests.localkube.apiserver.cel.rule_costs import RULES, SCHEMA

_RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_costs.json").read_text())
_SUBJECT = shape_of(SCHEMA, is_root=True)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_thought_to_cost_the_same(rule: str) -> None:
    assert _SUBJECT is not None
    assert estimated(rule, _SUBJECT) == _RECORDED["costs"][rule]


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_the_same_rules_are_too_dear(number: int) -> None:
    found = cost_errors(SCHEMAS[number], "spec.validation.openAPIV3Schema")
    said = sorted(f"{error.field}: {error.message}" for error in found)
    assert said == sorted(_RECORDED["errors"][number])  # Go's maps have no order
