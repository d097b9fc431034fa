"""Expressions that share a budget."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localkube.apiserver.cel.admission import WrongType
from localkube.apiserver.cel.errors import CompileError, EvaluationError, OutOfBudget
from localkube.apiserver.cel.program import PER_CALL, Program, problem_of

# kube-apiserver's: for what a policy's binding, or the rules of a custom resource, cost at one
# write; and for all conditions of a webhook or a policy.
BUDGET = 10_000_000
CONDITIONS_BUDGET = 2_500_000
EXHAUSTED = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class Exhausted(Exception):
    """The budget of the whole judgement is spent."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Only what could be compiled is stored; if it cannot be any more, `problem` says why."""

    text: str
    program: Program | None
    problem: str = ""


def attempted(text: str, compiling: Callable[[], Program]) -> Expression:
    try:
        return Expression(text, compiling())
    except CompileError as error:
        return Expression(text, None, f"compilation failed: {error}")
    except WrongType as error:
        return Expression(text, None, str(error))


class Meter:
    """What is left of a budget that several expressions share."""

    def __init__(self, budget: int) -> None:
        self._left = budget

    def value(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        """As `bare`, with an error that names the expression."""
        try:
            return self.bare(expression, names)
        except EvaluationError as error:
            if expression.program is None:
                raise
            text = f"expression '{expression.text}' resulted in error: {error}"
            raise EvaluationError(text) from None

    def bare(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        """Raises EvaluationError, also if this expression alone takes too long; Exhausted."""
        if expression.program is None:
            raise EvaluationError(f"compilation error: {expression.problem}")
        limit = min(PER_CALL, self._left)
        try:
            value, cost = expression.program.evaluate(names, limit)
        except EvaluationError as error:
            self._left -= error.cost
            raise EvaluationError(problem_of(error)) from None
        except OutOfBudget as error:
            self._left -= limit
            if limit < PER_CALL:
                raise Exhausted from None
            raise EvaluationError(problem_of(error)) from None
        self._left -= cost
        return value


def all_hold(conditions: Sequence[Expression], names: Mapping[str, Any], meter: Meter) -> bool:
    """False as soon as one is false; otherwise raises EvaluationError if one failed."""
    failures = []
    for condition in conditions:
        try:
            if meter.value(condition, names) is False:
                return False
        except EvaluationError as error:
            failures.append(str(error))
    if failures:
        raise EvaluationError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return True
