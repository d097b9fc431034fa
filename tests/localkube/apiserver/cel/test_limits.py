"""No expression, and no object, keeps an evaluation from ending soon."""

import tracemalloc
from typing import Any

import pytest

from localkube.apiserver.cel.errors import CompileError, EvaluationError, OutOfBudget
from localkube.apiserver.cel.expressions import Exhausted, Meter, attempted
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
        f"object.exists(a, [{'1, ' * 1000}] == a)",
        f"object.exists(a, {{{', '.join(f'{i}: 1' for i in range(1000))}}} == a)",
        "('x' + string(object)).size() == 0 || object.all(a, object == object)",
        "object.map(a, string(a)).join('y').replace('', 'z' + 'zzzzzzzz').split('').size() == 0",
    ],
)
def test_what_takes_long_runs_out_of_its_budget(expression: str) -> None:
    with pytest.raises(OutOfBudget):
        compiled(expression, DECLARED).evaluate({"object": list(range(1000))}, 20_000)


@pytest.mark.parametrize(
    "expression",
    [
        "1" * 5000,
        "-" + "9" * 5000,
        "0x" + "f" * 5000 + "u",
        "18446744073709551616u",
        "9223372036854775808",
        "[9223372036854775808]",
        "1e400",
        "[1].exists(i, i, true)",
        "{'a': 1}.transformMap(k, k, k)",
    ],
)
def test_what_no_value_can_be_is_no_expression(expression: str) -> None:
    with pytest.raises(CompileError, match=r"invalid .* literal|duplicate variable name"):
        compiled(expression, DECLARED)


@pytest.mark.parametrize(
    "expression",
    [
        "[1][double('NaN')]",
        "[1][double('-inf')]",
        "[1][0.5]",
        "duration('20000000000h') + duration('20000000000h')",
        "double('1_000')",
        "double(' 1')",
        "timestamp('2026-W01-1T00:00:00Z')",
        "timestamp('20260101T000000Z')",
    ],
)
def test_what_has_no_value_is_an_error_of_the_language(expression: str) -> None:
    with pytest.raises(EvaluationError):
        compiled(expression, DECLARED).evaluate({"object": 1})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("-9223372036854775808", -(1 << 63)),
        ("18446744073709551615u", (1 << 64) - 1),
        ("000000000000000000000000000007", 7),
        ("1.0 / -0.0", float("-inf")),
        ("quantity('1e400').asApproximateFloat()", float("inf")),
        ("string(duration('1000000s'))", "1000000s"),
        ("string(duration('1.5s'))", "1.5s"),
        ("string(timestamp('2026-01-01T00:00:00.10Z'))", "2026-01-01T00:00:00.1Z"),
        ("optional.of(1).orValue(1 / 0)", 1),
        ("optional.of(1).or(optional.of(1 / 0)).value()", 1),
        ("optional.none().orValue(2)", 2),
    ],
)
def test_values_at_the_edge(expression: str, value: Any) -> None:
    assert compiled(expression, DECLARED).evaluate({"object": 1})[0] == value


def test_an_evaluation_that_fails_is_paid_for() -> None:
    failing = attempted("", lambda: compiled("lists.range(1000).map(x, x).size() / 0", DECLARED))
    meter = Meter(8_000)
    with pytest.raises(EvaluationError):
        meter.bare(failing, {})
    with pytest.raises((EvaluationError, Exhausted)) as ended:
        meter.bare(failing, {})
    assert ended.type is Exhausted


def _doubled(text: str, times: int) -> str:
    program = compiled("object + object", DECLARED)
    for _ in range(times):
        text, _ = program.evaluate({"object": text})
    return text


@pytest.mark.parametrize(
    "expression",
    [
        "'%s'.format([lists.range(100).map(i, object)]).size()",
        "'%s'.format([{'a': [object, object, object, object, object, object]}]).size()",
        "[bytes(object)].map(b, lists.range(100).map(i, string(b)))",
        "lists.range(100).exists(i, double(object) == 2.0)",
        "lists.range(100).exists(i, timestamp('2026-01-01T00:00:00.' + object + 'Z') == i)",
    ],
)
def test_each_copy_of_a_long_text_is_paid_for(expression: str) -> None:
    """Otherwise one write could fill the memory, or take minutes."""
    with pytest.raises(OutOfBudget):
        compiled(expression, DECLARED).evaluate({"object": "1" * 10_000}, 5_000)


def test_copies_are_paid_for_before_they_are_made() -> None:
    program = compiled("'%s'.format([lists.range(1000).map(i, object)]).size()", DECLARED)
    tracemalloc.start()
    try:
        with pytest.raises(OutOfBudget):
            program.evaluate({"object": "x" * 50_000}, 20_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5_000_000, "a thousand copies would be fifty million bytes"


def test_doubling_a_text_is_paid_for() -> None:
    assert len(_doubled("x" * 1000, 10)) == 1_024_000
    with pytest.raises(OutOfBudget):
        _doubled("x" * 1000, 15)
