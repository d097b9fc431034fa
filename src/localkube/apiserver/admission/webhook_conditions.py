"""matchConditions: CEL expressions that say whether a webhook wants to see a write.

`authorizer` is not there for them; a configuration that asks for it is refused when it is written.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from localkube.apiserver.admission.attributes import Attributes, ClusterView
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


class ConditionError(Exception):
    """A condition could not be judged."""


def check_conditions(attributes: Attributes, cluster: ClusterView) -> None:
    """Of a webhook configuration that is being written."""
    errors: list[FieldError] = []
    for i, webhook in enumerate((attributes.obj or {}).get("webhooks") or ()):
        for j, condition in enumerate(webhook.get("matchConditions") or ()):
            expression = condition.get("expression") or ""
            why = _compiled(expression).problem if expression else ""
            if why:
                where = f"webhooks[{i}].matchConditions[{j}].expression"
                errors.append(invalid_value(where, expression, why))
    if errors:
        kind = attributes.kind
        raise invalid(kind.kind, kind.group, attributes.name, errors)


async def holds(
    conditions: Sequence[Condition], variables: Mapping[str, Any], judges: Judges
) -> bool:
    """False as soon as one is false; otherwise raises ConditionError if one failed."""
    compiled = [_compiled(condition.expression) for condition in conditions]
    names = {"namespaceObject": None, **variables}

    def question(budget: int) -> bool:
        return all_hold(compiled, names, Meter(budget))

    try:
        return await judges.answer(question, CONDITIONS_BUDGET)
    except EvaluationError as error:
        raise ConditionError(str(error)) from None
    except Exhausted:
        raise ConditionError(EXHAUSTED) from None


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Expression:
    return attempted(expression, lambda: admission_program(expression, (BOOL,)))
