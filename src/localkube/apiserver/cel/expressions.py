"""Expressions that share a budget, and what is done about those that take long."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from localkube.apiserver.cel.admission import WrongType
from localkube.apiserver.cel.errors import CompileError, EvaluationError, OutOfBudget
from localkube.apiserver.cel.program import PER_CALL, Program, problem_of
from localkube.apiserver.waiting import within_a_task

# kube-apiserver's: for what a policy's binding, or the rules of a custom resource, cost at one
# write; and for all conditions of a webhook or a policy.
BUDGET = 10_000_000
CONDITIONS_BUDGET = 2_500_000
EXHAUSTED = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
# What is judged at once, in some ten milliseconds. The rest is left to a thread, so that nobody
# waits for somebody else's expressions; and to one thread, so that many of them do not add up.
AT_ONCE = 10_000

_T = TypeVar("_T")


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
        except (EvaluationError, OutOfBudget) as error:
            if isinstance(error, OutOfBudget):
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


class Judges:
    """Asks questions that may take long without keeping others waiting."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "expressions")

    async def answer(self, question: Callable[[int], _T], budget: int) -> _T:
        """`question` gets its budget, and may be asked a second time with a larger one. Raises
        what it raises, Exhausted included."""
        try:
            return question(min(AT_ONCE, budget))
        except Exhausted:
            if budget <= AT_ONCE:
                raise
        await within_a_task()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, question, budget)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
