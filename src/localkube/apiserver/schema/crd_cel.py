"""x-kubernetes-validations: rules of CRDs that their authors wrote in CEL.

The library is loaded with the first rule that is judged. Kubernetes' own functions beyond the
language (quantities, URLs, IP addresses, ...) are not there: a rule that uses them is not judged,
and whoever writes such a CRD is told so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.cel_library import cel
from localkube.apiserver.status import FieldError

if TYPE_CHECKING:
    from cel import Program

_KEY = "x-kubernetes-validations"
_MAX_LENGTH = 5 * 1024
_MAX_LOOPS = 4  # loops within loops multiply
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FUNCTIONS = frozenset(
    {
        *("size", "contains", "startsWith", "endsWith", "matches", "has", "in"),
        *("int", "uint", "double", "string", "bool", "bytes", "type", "dyn"),
        *("max", "min", "duration", "timestamp"),
    }
)
_TYPES: dict[type, str] = {dict: "object", list: "array"}
_FAILURES = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError)
_ABSENT: Any = object()
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


def judged(
    node: SchemaNode, value: Any, old: Any = _ABSENT, path: str = ""
) -> Iterator[FieldError]:
    """What `value` breaks. Its types are those of the schema."""
    for rule in node.rules:
        yield from _broken(rule, value, old, path)
    if isinstance(value, dict):
        for name, inner in value.items():
            below = node.fields.get(name) or node.values
            if below is not None:
                before = old.get(name, _ABSENT) if isinstance(old, dict) else _ABSENT
                yield from judged(below, inner, before, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and node.items is not None:
        known = _by_key(node.keys, old)
        for place, inner in enumerate(value):
            before = known.get(_key(node.keys, inner), _ABSENT) if node.keys else _ABSENT
            yield from judged(node.items, inner, before, f"{path}[{place}]")


def _by_key(keys: tuple[str, ...], old: Any) -> dict[tuple[Any, ...], Any]:
    """Items of other lists cannot be told apart, so they have no past."""
    if not keys or not isinstance(old, list):
        return {}
    return {_key(keys, item): item for item in old}


def _key(keys: tuple[str, ...], item: Any) -> tuple[Any, ...]:
    return tuple(item.get(key) for key in keys) if isinstance(item, dict) else ()


def _broken(rule: CelRule, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    if complaint(rule.expression):
        return
    program = _compiled(rule.expression)
    variables = {"self": value}
    if "oldSelf" in program.variables():
        if rule.keeps_old or old is _ABSENT:
            return  # optional values are not in the library
        variables["oldSelf"] = old
    try:
        if program.execute(variables) is True:
            return
    except _FAILURES as error:
        problem = f"no such key: {error.args[0]}" if isinstance(error, KeyError) else str(error)
        why = f"{problem} evaluating rule: {rule.message}"
        shown = _TYPES.get(type(value), value)
        yield status.invalid_value(_place(rule, path), shown, why)
        return
    yield _worded(rule, value, _place(rule, path))


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


@lru_cache(maxsize=1024)
def complaint(expression: str) -> str:
    """Why a rule is not judged; empty if it is. Starts with `syntax: ` when it is no CEL."""
    if len(expression) > _MAX_LENGTH or len(_LOOP.findall(expression)) > _MAX_LOOPS:
        return "too long, or too many loops"
    try:
        program = _compiled(expression)
    except _FAILURES as error:
        return f"syntax: {error}"
    used = {name for name in program.functions() if _NAME.fullmatch(name)}
    unknown = sorted(used - _FUNCTIONS)
    return f"uses {', '.join(unknown)}" if unknown else ""


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> "Program":
    program: Program = cel().compile(expression)
    return program
