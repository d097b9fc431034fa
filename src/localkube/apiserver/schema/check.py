"""Checks whether an object fits its schema, with the rules and the messages of Kubernetes' decoder.

A fast check accepts almost every object. Only for an object that it rejects, the slow walk here
finds out why. The walk changes the object in place into what Go's decoder would have made of it:
unknown fields go, null means absent, JSON numbers in quantities become text, times become UTC.
"""

import base64
import binascii
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.kinds import Kind
from localkube.apiserver.schema.fast import is_clean
from localkube.apiserver.schema.node import Schema, Type
from localkube.apiserver.schema.strictness import AsWritten, said
from localkube.apiserver.schema.times import (
    MICRO_LAYOUT,
    TIME_LAYOUT,
    BadTime,
    stored_time,
)
from localkube.apiserver.schema.wording import (
    FieldPath,
    cannot_unmarshal,
    cannot_unmarshal_all,
    owner,
    unknown_field,
)

FieldValidation = Literal["Strict", "Warn", "Ignore"]
_MOST_UNKNOWN = 100
_PLAIN = AsWritten()
_BASE64 = frozenset(f"{string.ascii_letters}{string.digits}+/")
_EXACT = 2.0**53  # from here on, a float is no whole number to Kubernetes
_INT_LIMITS = {"int32": 2**31, "int64": 2**63}


@dataclass(slots=True)
class Problems:
    unknown: list[str] = field(default_factory=list)  # 'unknown field "spec.foo"', in order
    error: str = ""  # the first value that does not fit


class _Fatal(Exception):
    """Go's decoder gives up at once: a type with its own decoder refused the value."""


class Findings(NamedTuple):
    refusal: str  # why the object cannot be taken; empty if it can
    warnings: list[str]


def conform(
    obj: Obj,
    kind: Kind,
    schema: Schema,
    validation: FieldValidation,
    written: AsWritten = _PLAIN,
) -> list[str]:
    """Makes `obj` fit or raises 400; returns warnings."""
    refusal, warnings = examine(obj, kind, schema, validation, written)
    if refusal:
        raise status.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {refusal}'
        )
    return warnings


def examine(
    obj: Obj,
    kind: Kind,
    schema: Schema,
    validation: FieldValidation,
    written: AsWritten = _PLAIN,
) -> Findings:
    """Like conform, for callers who refuse in words of their own: patches."""
    if is_clean(obj, schema) and not written.repeated:
        return Findings("", [])
    problems = check(obj, schema)
    if problems.error or validation == "Ignore":
        return Findings(problems.error, [])
    found = said(problems.unknown, written, custom=kind.custom)
    if found and validation == "Strict":
        return Findings(f"strict decoding error: {', '.join(found)}", [])
    return Findings("", [line for text in found for line in _warnings(text)])


def _warnings(text: str) -> list[str]:
    """Of YAML's repeated keys, one for each."""
    head, *lines = text.split("\n  ")
    return lines or [head]


def check(obj: Obj, schema: Schema) -> Problems:
    """Changes `obj` in place."""
    problems = Problems()
    try:
        _object(obj, schema, None, problems)
    except _Fatal as fatal:
        problems.error = str(fatal)
    return problems


def _object(value: Any, schema: Schema, place: FieldPath | None, problems: Problems) -> Any:
    if type(value) is not dict:
        return _misfit(value, schema, place, problems)
    fields = schema.fields
    for key in list(value):
        known = fields.get(key)
        if known is None:
            if not schema.preserve_unknown:
                del value[key]
                if len(problems.unknown) < _MOST_UNKNOWN:
                    problems.unknown.append(unknown_field(FieldPath(place, schema, key)))
            continue
        inner = value[key]
        if inner is None:
            if not known.nullable:
                del value[key]
            continue
        value[key] = _CHECKS[known.type](inner, known, FieldPath(place, schema, key), problems)
    return value


def _map(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> Any:
    if type(value) is not dict:
        return _misfit(value, schema, place, problems)
    assert schema.items is not None
    one = _CHECKS[schema.items.type]
    for key, inner in list(value.items()):
        if inner is not None:
            value[key] = one(inner, schema.items, FieldPath(place, schema, key), problems)
        elif owner(place) is not None:
            value[key] = _zero(schema.items)
        elif not schema.items.nullable and schema.items.type is not Type.ANY:
            del value[key]
    return value


def _list(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> Any:
    if type(value) is not list:
        return _misfit(value, schema, place, problems)
    assert schema.items is not None
    one = _CHECKS[schema.items.type]
    for index, inner in enumerate(value):
        if inner is not None:
            value[index] = one(inner, schema.items, FieldPath(place, schema, index), problems)
        elif owner(place) is not None:
            value[index] = _zero(schema.items)
    return value


def _misfit(value: Any, schema: Schema, place: FieldPath | None, problems: Problems) -> Any:
    """A wrong type. Inside what a CRD defines, validation reports it instead."""
    if place is not None and not problems.error:
        if owner(place) is not None:
            problems.error = cannot_unmarshal(value, place)
        elif schema.definition:
            problems.error = cannot_unmarshal_all(value, schema)
    return value


def _is(*types: type) -> "Callable[[Any, Schema, FieldPath, Problems], Any]":
    def checked(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> Any:
        return value if type(value) in types else _misfit(value, schema, place, problems)

    return checked


def _integer(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> Any:
    if type(value) is float and value.is_integer() and owner(place) is None:
        return int(value) if abs(value) < _EXACT else value
    limit = _INT_LIMITS.get(schema.integer_format, 2**63)
    if type(value) is not int or not -limit <= value < limit:
        return _misfit(value, schema, place, problems)
    return value


def _int_or_string(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> Any:
    fits = type(value) is str or (type(value) is int and -(2**31) <= value < 2**31)
    if not fits and owner(place) is not None:
        raise _Fatal(cannot_unmarshal(value, place, "int32"))
    return value


def _quantity(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> str:
    text = value if type(value) is str else repr(value) if type(value) in (int, float) else ""
    try:
        quantity.parse(text)
    except quantity.ParseError as error:
        raise _Fatal(str(error)) from error
    return text


def _time(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> str:
    if type(value) is not str:
        raise _Fatal(cannot_unmarshal(value, place, "string"))
    try:
        return stored_time(value, MICRO_LAYOUT if schema.name == "MicroTime" else TIME_LAYOUT)
    except BadTime as error:
        raise _Fatal(str(error)) from error


def _bytes(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> Any:
    if type(value) is not str:
        return _misfit(value, schema, place, problems)
    text = value.replace("\n", "").replace("\r", "")
    if not problems.error and not _is_base64(text):
        problems.error = f"illegal base64 data at input byte {_bad_base64(text)}"
    return text


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(text) % 4 == 0


def _bad_base64(text: str) -> int:
    """Where Go's decoder stops."""
    place = 0
    while place < len(text):
        start = place
        while place < len(text) and place < start + 4 and text[place] in _BASE64:
            place += 1
        if place == start + 4:
            continue
        if place == len(text):
            return start  # cut off
        if text[place] != "=" or place < start + 2:
            return place
        if place == start + 2 and text[place + 1 : place + 2] != "=":
            return place + (place + 1 == len(text))
        return start + 4  # something after the padding
    return place


def _zero(schema: Schema) -> Any:
    """What Go keeps for a null in a list or map."""
    match schema.type:
        case Type.OBJECT:
            return {}
        case Type.STRING | Type.BYTES:
            return ""
        case Type.INTEGER | Type.NUMBER | Type.INT_OR_STRING:
            return 0
        case Type.BOOLEAN:
            return False
        case Type.QUANTITY:
            return "0"
        case _:
            return None


def _any(value: Any, schema: Schema, place: FieldPath, problems: Problems) -> Any:
    return value


_CHECKS: dict[Type, Callable[[Any, Schema, Any, Problems], Any]] = {
    Type.OBJECT: _object,
    Type.MAP: _map,
    Type.LIST: _list,
    Type.STRING: _is(str),
    Type.BYTES: _bytes,
    Type.TIME: _time,
    Type.INTEGER: _integer,
    Type.NUMBER: _is(int, float),
    Type.BOOLEAN: _is(bool),
    Type.INT_OR_STRING: _int_or_string,
    Type.QUANTITY: _quantity,
    Type.ANY: _any,
}
