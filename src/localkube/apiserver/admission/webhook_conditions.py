"""matchConditions: CEL expressions that say whether a webhook wants to see a write.

Kubernetes' own functions beyond the language (authorizer, quantities, URLs,
regular-expression extras, optional fields) are not there; a configuration that uses them is
refused when it is written, not silently passed over when it should count.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes, ClusterView
from localkube.apiserver.admission.webhook_config import Condition
from localkube.apiserver.cel_library import cel
from localkube.apiserver.status import FieldError, invalid, invalid_value

if TYPE_CHECKING:
    from cel import Program

_MAX_LENGTH = 5 * 1024
# Loops within loops multiply; nothing sensible needs more.
_MAX_LOOPS = 4
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")
_FUNCTIONS = frozenset(
    {
        *("size", "contains", "startsWith", "endsWith", "matches", "has", "in"),
        *("int", "uint", "double", "string", "bool", "bytes", "type", "dyn"),
        *("max", "min", "duration", "timestamp"),
        *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
        *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    }
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# A variable and the fields behind it, up to a call: of `object.spec.x.exists(` it is object.spec.x.
_CHAIN = re.compile(
    r"\b(?:object|oldObject|request|namespaceObject)\b(?:\s*\.\s*[A-Za-z_]\w*\b(?!\s*\())*"
)
_LONGEST_KEPT = 4096
_FAILURES = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError)


class ConditionError(Exception):
    """A condition could not be judged."""


def check_conditions(attributes: Attributes, cluster: ClusterView) -> None:
    """Of a webhook configuration that is being written."""
    errors: list[FieldError] = []
    for i, webhook in enumerate((attributes.obj or {}).get("webhooks") or ()):
        for j, condition in enumerate(webhook.get("matchConditions") or ()):
            expression = condition.get("expression") or ""
            why = _complaint(expression) if expression else ""
            if why:
                where = f"webhooks[{i}].matchConditions[{j}].expression"
                errors.append(invalid_value(where, expression, why))
    if errors:
        kind = attributes.kind
        raise invalid(kind.kind, kind.group, attributes.name, errors)


def holds(conditions: Sequence[Condition], variables: Obj) -> bool:
    """False as soon as one is false; otherwise raises ConditionError if one failed."""
    failures = []
    for condition in conditions:
        head = f"expression '{condition.expression}' resulted in error:"
        try:
            if _evaluate(condition.expression, variables) is False:
                return False
        except KeyError as error:
            failures.append(f"{head} no such key: {error.args[0]}")
        except _FAILURES as error:
            failures.append(f"{head} {error}")
    if failures:
        raise ConditionError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return True


def _evaluate(expression: str, variables: Obj) -> bool:
    """Pods of one template come by the thousand, and what a condition looks at is the same in all
    of them. So a judgement is kept with exactly what it looked at."""
    seen = orjson.dumps(_looked_at(expression, variables))
    if len(seen) <= _LONGEST_KEPT:
        return _kept_judgement(expression, seen)
    return _judgement(expression, seen)


def _judgement(expression: str, seen: bytes) -> bool:
    result: Any = _compiled(expression).execute(orjson.loads(seen))
    if not isinstance(result, bool):
        raise TypeError(f"must evaluate to bool but got {type(result).__name__}")
    return result


_kept_judgement = lru_cache(maxsize=1024)(_judgement)


def _looked_at(expression: str, variables: Obj) -> Obj:
    """The parts of the variables that the expression names: most of an object is none of its
    business, and what is not there need not be translated."""
    found: Obj = {}
    for path in _paths(expression):
        _copy_part(path, variables, found)
    return found


def _copy_part(path: tuple[str, ...], given: Obj, taken: Obj) -> None:
    for step in path[:-1]:
        inner = given.get(step)
        if not isinstance(inner, dict):
            break
        given, taken = inner, taken.setdefault(step, {})
    else:
        step = path[-1]
    if step in given:
        taken[step] = given[step]


@lru_cache(maxsize=256)
def _paths(expression: str) -> tuple[tuple[str, ...], ...]:
    """Longest first: where a part and its whole are both named, the whole comes last and stays."""
    chains = {re.sub(r"\s", "", match.group()) for match in _CHAIN.finditer(expression)}
    return tuple(sorted((tuple(chain.split(".")) for chain in chains), key=len, reverse=True))


@lru_cache(maxsize=256)
def _compiled(expression: str) -> "Program":
    program: Program = cel().compile(expression)
    return program


def _complaint(expression: str) -> str:
    if len(expression) > _MAX_LENGTH:
        return f"must be no more than {_MAX_LENGTH} bytes"
    if len(_LOOP.findall(expression)) > _MAX_LOOPS:
        return f"compilation failed: more than {_MAX_LOOPS} loops are not supported here"
    try:
        program = _compiled(expression)
    except _FAILURES as error:
        return f"compilation failed: {error}"
    used = {name for name in program.functions() if _NAME.fullmatch(name)}
    unknown = sorted(used - _FUNCTIONS)
    if "authorizer" in program.variables():
        unknown.insert(0, "authorizer")
    if unknown:
        return f"compilation failed: not supported here: {', '.join(unknown)}"
    return _constant_complaint(expression, program)


def _constant_complaint(expression: str, program: "Program") -> str:
    """Without variables the result is known already, and with it its type."""
    if program.variables():
        return ""
    try:
        _evaluate(expression, {})
    except TypeError as error:
        return str(error)
    except _FAILURES as error:
        return f"compilation failed: {error}"
    return ""
