"""matchConditions: CEL expressions that say whether a webhook wants to see a write.

`authorizer` is not there for them; a configuration that asks for it is refused when it is written.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kubeclient.turns import Turns
from localkube.apiserver.admission.attributes import Attributes, ClusterView
from localkube.apiserver.admission.compiling import Compiling
from localkube.apiserver.admission.webhook_config import Condition
from localkube.apiserver.cel.admission import admission_program
from localkube.apiserver.cel.errors import EvaluationError
from localkube.apiserver.cel.expressions import (
    CONDITIONS_BUDGET,
    EXHAUSTED,
    Exhausted,
    Expression,
    Meter,
    all_hold,
    attempted,
)
from localkube.apiserver.cel.types import BOOL
from localkube.apiserver.judges import Judges
from localkube.apiserver.status import FieldError, invalid, invalid_value

_KEPT = 1024  # expressions; a webhook has at most 64


class ConditionError(Exception):
    """A condition could not be judged."""


def check_conditions(attributes: Attributes, cluster: ClusterView) -> None:
    """Of a webhook configuration that is being written."""
    errors: list[FieldError] = []
    for i, webhook in enumerate((attributes.obj or {}).get("webhooks") or ()):
        for j, condition in enumerate(webhook.get("matchConditions") or ()):
            expression = condition.get("expression") or ""
            why = _compile(expression).problem if expression else ""
            if why:
                where = f"webhooks[{i}].matchConditions[{j}].expression"
                errors.append(invalid_value(where, expression, why))
    if errors:
        kind = attributes.kind
        raise invalid(kind.kind, kind.group, attributes.name, errors)


class Conditions:
    """Those of webhooks, compiled when they are first needed."""

    def __init__(self, judges: Judges) -> None:
        self._judges = judges
        self._compiling = Compiling(judges.long_work, "conditions of webhooks")
        self._compiled: dict[str, Expression] = {}

    async def hold(self, conditions: Sequence[Condition], variables: Mapping[str, Any]) -> bool:
        """False as soon as one is false; otherwise raises ConditionError if one failed."""
        turns, compiled = Turns(), []
        for condition in conditions:
            await turns.next()
            compiled.append(await self._ready(condition.expression))
        names = {"namespaceObject": None, **variables}

        def question(budget: int) -> bool:
            return all_hold(compiled, names, Meter(budget))

        try:
            return await self._judges.answer(question, CONDITIONS_BUDGET)
        except EvaluationError as error:
            raise ConditionError(str(error)) from None
        except Exhausted:
            raise ConditionError(EXHAUSTED) from None

    async def _ready(self, text: str) -> Expression:
        found = self._compiled.get(text)
        if found is None:
            found = await self._compiling.done(
                lambda: self._compiled.get(text), lambda: _compile(text), lambda: len(text)
            )
            while len(self._compiled) >= _KEPT:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[text] = found
        return found


def _compile(expression: str) -> Expression:
    return attempted(expression, lambda: admission_program(expression, (BOOL,)))
