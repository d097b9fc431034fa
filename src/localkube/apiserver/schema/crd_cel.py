"""x-kubernetes-validations: rules of CRDs that their authors wrote in CEL.

Some of Kubernetes' own functions (URLs, IP addresses, ...) are not there: a rule that uses them is
not judged, and whoever writes such a CRD is told so.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.cel.errors import CompileError, EvaluationError
from localkube.apiserver.cel.expressions import (
    BUDGET,
    EXHAUSTED,
    Exhausted,
    Expression,
    Meter,
)
from localkube.apiserver.cel.program import OVER_LIMIT, compiled
from localkube.apiserver.cel.types import DYN
from localkube.apiserver.cel.values import Optional
from localkube.apiserver.memory import forgotten, remembered
from localkube.apiserver.status import FieldError

_KEY = "x-kubernetes-validations"
_COMPILED_AT_ONCE = 4_000  # characters of rules, which takes about ten milliseconds
_TYPES: dict[type, str] = {dict: "object", list: "array"}
ABSENT: Any = object()
UNCHECKED = FieldError(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


@dataclass(frozen=True, slots=True)
class CelRule:
    expression: str
    message: str
    reason: str
    path: str  # below the value that the rule is about; empty for the value itself
    keeps_old: bool  # is judged where there is nothing old, too


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """The part of a schema that has rules in it."""

    rules: tuple[CelRule, ...]
    fields: dict[str, "SchemaNode"] = field(default_factory=dict)
    items: "SchemaNode | None" = None
    values: "SchemaNode | None" = None
    keys: tuple[str, ...] = ()


def rules_of(schema: Obj) -> SchemaNode | None:
    """None when there are none."""
    named = ((name, rules_of(inner)) for name, inner in (schema.get("properties") or {}).items())
    fields = {name: inner for name, inner in named if inner is not None}
    items, values = (_below(schema.get(key)) for key in ("items", "additionalProperties"))
    rules = tuple(_rule(each) for each in schema.get(_KEY) or ())
    if not (rules or fields or items or values):
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return SchemaNode(rules, fields, items, values, keys)


def _below(schema: Any) -> SchemaNode | None:
    return rules_of(schema) if isinstance(schema, dict) else None


def _rule(row: Obj) -> CelRule:
    expression = row.get("rule", "")
    return CelRule(
        expression,
        row.get("message") or f"failed rule: {expression}",
        row.get("reason") or "FieldValueInvalid",
        row.get("fieldPath") or "",
        row.get("optionalOldSelf") is True,
    )


def broken_rules(
    node: SchemaNode, value: Any, old: Any = ABSENT, budget: int = BUDGET
) -> list[FieldError]:
    """What `value` breaks. Its types are those of the schema. Raises Exhausted if the budget does
    not do, unless it is the largest that there is."""
    meter, found = _RuleMeter(budget), list[FieldError]()
    try:
        found.extend(_judged(node, value, old, "", meter))
    except Exhausted:
        if budget < BUDGET:
            raise
        found.append(status.invalid_value("<nil>", "object", EXHAUSTED))
    return found


class _RuleMeter(Meter):
    """Also of what is compiled: a small object may have to do with thousands of rules, and with so
    many no cache is large enough."""

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        self._compiling = _COMPILED_AT_ONCE if budget < BUDGET else math.inf

    def expression(self, text: str) -> Expression:
        """Raises Exhausted."""
        if len(text) > self._compiling:
            raise Exhausted
        misses = _compiled.cache_info().misses
        found = _compiled(text)
        if _compiled.cache_info().misses > misses:
            self._compiling -= len(text)
        return found


def _judged(
    node: SchemaNode, value: Any, old: Any, path: str, meter: _RuleMeter
) -> Iterator[FieldError]:
    for rule in node.rules:
        yield from _broken(rule, value, old, path, meter)
    if isinstance(value, dict):
        for name, inner in value.items():
            below = node.fields.get(name) or node.values
            if below is not None:
                before = old.get(name, ABSENT) if isinstance(old, dict) else ABSENT
                yield from _judged(below, inner, before, f"{path}.{name}" if path else name, meter)
    elif isinstance(value, list) and node.items is not None:
        known = _by_key(node.keys, old)
        for place, inner in enumerate(value):
            before = known.get(_key(node.keys, inner), ABSENT) if node.keys else ABSENT
            yield from _judged(node.items, inner, before, f"{path}[{place}]", meter)


def _by_key(keys: tuple[str, ...], old: Any) -> dict[tuple[Any, ...], Any]:
    """Items of other lists cannot be told apart, so they have no past."""
    if not keys or not isinstance(old, list):
        return {}
    return {_key(keys, item): item for item in old}


def _key(keys: tuple[str, ...], item: Any) -> tuple[Any, ...]:
    return tuple(item.get(key) for key in keys) if isinstance(item, dict) else ()


def _broken(
    rule: CelRule, value: Any, old: Any, path: str, meter: _RuleMeter
) -> Iterator[FieldError]:
    expression = meter.expression(rule.expression)
    if expression.program is None:
        return
    names = {"self": value}
    if "oldSelf" in rule.expression:
        if rule.keeps_old:
            names["oldSelf"] = Optional.NONE if old is ABSENT else Optional((old,))
        elif old is ABSENT:
            return
        else:
            names["oldSelf"] = old
    try:
        if meter.bare(expression, names) is True:
            return
    except EvaluationError as error:
        shown = _TYPES.get(type(value), value)
        yield status.invalid_value(_place(rule, path), shown, _failure(str(error), rule))
        return
    yield _worded(rule, value, _place(rule, path))


def _failure(problem: str, rule: CelRule) -> str:
    if problem == OVER_LIMIT:
        what = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{problem}' {what}: {rule.message}"
    return f"{problem} evaluating rule: {rule.message}"


def _place(rule: CelRule, path: str) -> str:
    return f"{path}{rule.path}".lstrip(".") or "<nil>"


def _worded(rule: CelRule, value: Any, where: str) -> FieldError:
    if rule.reason == "FieldValueForbidden":
        return status.forbidden_field(where, rule.message)
    if rule.reason == "FieldValueRequired":
        return status.required(where, rule.message)
    if rule.reason == "FieldValueDuplicate":
        return status.duplicate(where, value)
    if isinstance(value, dict | list):  # too much to be shown
        return FieldError(where, "FieldValueInvalid", f"Invalid value: {rule.message}")
    return status.invalid_value(where, value, rule.message)


@remembered(8192)  # each rule of a CRD that is written is asked about three times
def complaint(expression: str) -> str:
    """Why a rule is not judged; empty if it is. Starts with `syntax: ` when it is no CEL."""
    return _compiled(expression).problem


@forgotten
@lru_cache(maxsize=4096)
def _compiled(expression: str) -> Expression:
    declared = {"self": DYN, "oldSelf": DYN}
    try:
        return Expression(expression, compiled(expression, declared))
    except CompileError as error:
        missing = f"uses {error.missing}" if error.missing else f"syntax: {error}"
        return Expression(expression, None, missing)
