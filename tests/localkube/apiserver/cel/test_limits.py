"""No expression, and no object, keeps an evaluation from ending soon."""

from typing import Any

import pytest

from localkube.apiserver.cel.errors import CompileError, EvaluationError, OutOfBudget
from localkube.apiserver.cel.program import compiled

DECLARED = {"object": "dyn"}


def _nested(depth: int) -> Any:
    found: Any = "x"
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 200 + "1" + ")" * 200,
        "[" * 200 + "]" * 200,
        "-" * 201 + "object" + ".a" * 500,
        "object" + " + object" * 500,
        "object" + "[0]" * 500,
        "object.all(a, " * 80 + "true" + ")" * 80,
    ],
)
def test_an_expression_that_is_too_deep_is_none(expression: str) -> None:
    with pytest.raises(CompileError, match="expression recursion limit exceeded"):
        compiled(expression, DECLARED)


def test_a_long_chain_of_conditions_is_not_deep() -> None:
    program = compiled(" || ".join(["object == 1"] * 1000), DECLARED)
    assert program.evaluate({"object": 1})[0] is True


@pytest.mark.parametrize("expression", ["object == object.a", "'%s'.format([object]) == ''"])
def test_an_object_that_is_too_deep_cannot_be_judged(expression: str) -> None:
    with pytest.raises(EvaluationError, match="expression recursion limit exceeded"):
        compiled(expression, DECLARED).evaluate({"object": _nested(5000)})


@pytest.mark.parametrize(
    "expression",
    [
        "object.all(a, object.all(b, object.all(c, a + b + c >= 0)))",
        "object.map(a, object.map(b, object.map(c, c))).size() == 0",
        "lists.range(100000).map(x, lists.range(100000)).size() == 0",
        "object.map(a, object) == object.map(a, object)",
        "('x' + string(object)).size() == 0 || object.all(a, object == object)",
        "object.map(a, string(a)).join('y').replace('', 'z' + 'zzzzzzzz').split('').size() == 0",
    ],
)
def test_what_takes_long_runs_out_of_its_budget(expression: str) -> None:
    with pytest.raises(OutOfBudget):
        compiled(expression, DECLARED).evaluate({"object": list(range(1000))}, 20_000)


def _doubled(text: str, times: int) -> str:
    program = compiled("object + object", DECLARED)
    for _ in range(times):
        text, _ = program.evaluate({"object": text})
    return text


def test_doubling_a_text_is_paid_for() -> None:
    assert len(_doubled("x" * 1000, 10)) == 1_024_000
    with pytest.raises(OutOfBudget):
        _doubled("x" * 1000, 15)
