"""What a policy says of one write with one set of parameters. A pure question, with a budget."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localkube.apiserver.admission.policy_config import Expression, Policy, Validation
from localkube.apiserver.cel.errors import EvaluationError, OutOfBudget
from localkube.apiserver.cel.program import PER_CALL, problem_of

# kube-apiserver's: for what a binding costs at one write, and for its match conditions alone.
BUDGET = 10_000_000
_CONDITIONS_BUDGET = 2_500_000
EXHAUSTED = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_LONGEST_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class Denial:
    message: str
    reason: str = ""
    by_annotation: bool = False  # such a one refuses whatever the binding's actions are


class Exhausted(Exception):
    """The budget of the whole judgement is spent."""


class _Meter:
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


class _Variables(Mapping[str, Any]):
    """Each is evaluated when it is first asked for, and once."""

    def __init__(self, policy: Policy, names: Mapping[str, Any], meter: _Meter) -> None:
        self._expressions = dict(policy.variables)
        self._names = {**names, "variables": self}
        self._meter = meter
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        try:
            value = self._meter.bare(self._expressions[name], self._names)
        except EvaluationError as error:
            text = f'composited variable "{name}" fails to evaluate: {error}'
            raise EvaluationError(text) from None
        self._known[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)


def judged(
    policy: Policy, names: Mapping[str, Any], namespace: Any, budget: int = BUDGET
) -> list[Denial]:
    """`names` without the namespace, which match conditions do not see. Raises Exhausted."""
    try:
        meter = _Meter(min(budget, _CONDITIONS_BUDGET))
        if not _applies(policy, {**names, "namespaceObject": None}, meter):
            return []
    except EvaluationError as error:
        return _failed(policy, str(error))
    meter = _Meter(budget)
    names = {**names, "namespaceObject": namespace}
    # Only validations may ask the authorizer, so that others have variables of their own.
    for_messages = _with_variables(policy, _without_authorizer(names), meter)
    names = _with_variables(policy, names, meter)
    found: list[Denial] = []
    for validation in policy.validations:
        try:
            holds = meter.value(validation.expression, names)
        except EvaluationError as error:
            found += _failed(policy, str(error))
            continue
        if holds is not True:
            found.append(Denial(_message(validation, for_messages, meter), validation.reason))
    return [*found, *_annotation_errors(policy, for_messages, _Meter(budget))]


def _without_authorizer(names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in names.items() if not name.startswith("authorizer")}


def _with_variables(policy: Policy, names: Mapping[str, Any], meter: _Meter) -> dict[str, Any]:
    return {**names, "variables": _Variables(policy, names, meter)}


def _failed(policy: Policy, why: str) -> list[Denial]:
    return [] if policy.ignores_failure else [Denial(why)]


def _applies(policy: Policy, names: Mapping[str, Any], meter: _Meter) -> bool:
    """A condition that is false decides; only then do those that failed."""
    failures = []
    for condition in policy.conditions:
        try:
            if meter.value(condition, names) is False:
                return False
        except EvaluationError as error:
            failures.append(str(error))
    if failures and not policy.ignores_failure:
        text = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
        raise EvaluationError(text)
    return not failures


def _message(validation: Validation, names: Mapping[str, Any], meter: _Meter) -> str:
    if validation.message_expression is not None:
        try:
            found = meter.value(validation.message_expression, names)
        except EvaluationError:
            found = None
        text = found.strip() if isinstance(found, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return str(text)
    return validation.message or f"failed expression: {validation.expression.text.strip()}"


def _annotation_errors(policy: Policy, names: Mapping[str, Any], meter: _Meter) -> Iterator[Denial]:
    """Nobody reads the annotations here; but an expression that fails refuses the write."""
    for _, expression in policy.annotations:
        try:
            value = meter.value(expression, names)
        except EvaluationError as error:
            if not policy.ignores_failure:
                yield Denial(str(error), by_annotation=True)
            continue
        if value is not None and not isinstance(value, str):
            text = f"valueExpression '{expression.text}' resulted in unsupported return type: "
            yield Denial(
                f"{text}{type(value).__name__}. Return type must be either string or null.",
                by_annotation=True,
            )
