"""What a policy says of one write with one set of parameters. A pure question, with a budget."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localkube.apiserver.admission.policy_config import Policy, Validation
from localkube.apiserver.cel.errors import EvaluationError
from localkube.apiserver.cel.expressions import (
    BUDGET,
    CONDITIONS_BUDGET,
    Meter,
    all_hold,
)

_LONGEST_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class Denial:
    message: str
    reason: str = ""
    by_annotation: bool = False  # such a one refuses whatever the binding's actions are


class _Variables(Mapping[str, Any]):
    """Each is evaluated when it is first asked for, and once."""

    def __init__(self, policy: Policy, names: Mapping[str, Any], meter: Meter) -> None:
        self._expressions = dict(policy.variables)
        self._names = {**names, "variables": self}
        self._meter = meter
        self._known: dict[str, Any] = {}
        self._failed: dict[str, str] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        if name in self._failed:  # a loop may ask for it a hundred thousand times
            raise EvaluationError(self._failed[name])
        try:
            value = self._meter.bare(self._expressions[name], self._names)
        except EvaluationError as error:
            text = f'composited variable "{name}" fails to evaluate: {error}'
            self._failed[name] = text
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
        meter = Meter(min(budget, CONDITIONS_BUDGET))
        if not all_hold(policy.conditions, {**names, "namespaceObject": None}, meter):
            return []
    except EvaluationError as error:
        return _failed(policy, str(error))
    meter = Meter(budget)
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
    return [*found, *_annotation_errors(policy, for_messages, Meter(budget))]


def _without_authorizer(names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in names.items() if not name.startswith("authorizer")}


def _with_variables(policy: Policy, names: Mapping[str, Any], meter: Meter) -> dict[str, Any]:
    return {**names, "variables": _Variables(policy, names, meter)}


def _failed(policy: Policy, why: str) -> list[Denial]:
    return [] if policy.ignores_failure else [Denial(why)]


def _message(validation: Validation, names: Mapping[str, Any], meter: Meter) -> str:
    if validation.message_expression is not None:
        try:
            found = meter.value(validation.message_expression, names)
        except EvaluationError:
            found = None
        text = found.strip() if isinstance(found, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return str(text)
    return validation.message or f"failed expression: {validation.expression.text.strip()}"


def _annotation_errors(policy: Policy, names: Mapping[str, Any], meter: Meter) -> Iterator[Denial]:
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
