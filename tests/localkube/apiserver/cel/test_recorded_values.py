"""Expressions have the values and the errors that a real server gave them."""

import json
from typing import Any

import pytest

from localkube.apiserver.admission.policy_config import policy_of
from localkube.apiserver.admission.policy_judgement import judged
from localkube.apiserver.cel.authorizer import Authorizer, Check
from localkube.apiserver.security.access import ALLOWED
from localkube.apiserver.validation.admission_policies import create_policy
from tests.localkube.apiserver.cel.expressions import EXPRESSIONS, OBJECT
from tests.localkube.apiserver.cel.record_values import TARGET, policy

RECORDED: list[tuple[str, str]] = json.loads(TARGET.read_bytes())
_AUTHORIZER = Authorizer(lambda who, what: ALLOWED)
# The real one goes on after a syntax error, and says what else is wrong.
_WORDED_OTHERWISE = {"'open"}
_NAMES: dict[str, Any] = {
    "object": OBJECT,
    "oldObject": None,
    "authorizer": _AUTHORIZER,
    "authorizer.requestResource": Check(_AUTHORIZER, ()),
    "params": None,
    "request": {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "thing",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "dryRun": True,
        "options": {"kind": "CreateOptions"},
    },
}
_NAMESPACE = {"metadata": {"name": "default", "labels": {"kubernetes.io/metadata.name": "default"}}}


def test_all_expressions_were_recorded() -> None:
    assert [expression for expression, _ in RECORDED] == EXPRESSIONS


@pytest.mark.parametrize(("expression", "expected"), RECORDED, ids=[e for e, _ in RECORDED])
def test_an_expression_is_judged_as_recorded(expression: str, expected: str) -> None:
    found = _outcome(expression)
    if expression in _WORDED_OTHERWISE:
        assert found.startswith("compilation failed: ")
    else:
        assert found == expected


def _outcome(expression: str) -> str:
    stored = policy(0, expression)
    constraints = stored["spec"]["matchConstraints"]
    constraints |= {"matchPolicy": "Equivalent", "namespaceSelector": {}}
    constraints["resourceRules"][0]["scope"] = "*"
    stored["spec"]["failurePolicy"] = "Fail"
    for error in create_policy(stored):
        if error.field == "spec.variables[0].expression":
            return error.message.partition('": ')[2]
    (denial,) = judged(policy_of(stored), _NAMES, _NAMESPACE)
    return denial.message
