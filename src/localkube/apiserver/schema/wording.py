"""What is said when a value does not fit its field, in the words of Go's JSON decoder.

Users know and search for "cannot unmarshal string into Go struct field ...": the words stay. The
types are those of the schema; Go's own names of them (v1.FailurePolicyType for a string), and the
structs that Go embeds, are not known here.

A FieldPath is where the checker stands, from the innermost step outwards. Texts are
made only when something is wrong.
"""

from typing import Any, NamedTuple

import orjson

from localkube.apiserver.schema.node import Schema, Type


class FieldPath(NamedTuple):
    """One step: into `key` of a value of type `parent`. A list's keys are numbers."""

    outer: "FieldPath | None"
    parent: Schema
    key: str | int


def strict_path(place: FieldPath) -> str:
    """As strict decoding names a field: spec.containers[0].image"""
    if isinstance(place.key, int):
        return f"{strict_path(place.outer) if place.outer else ''}[{place.key}]"
    return f"{strict_path(place.outer)}.{place.key}" if place.outer else place.key


def unknown_field(place: FieldPath) -> str:
    return f"unknown field {_quoted(strict_path(place))}"


def owner(place: FieldPath) -> Schema | None:
    """The innermost definition around the value; None inside what a CRD defines."""
    step: FieldPath | None = place
    while step is not None and step.parent.type is not Type.OBJECT:
        step = step.outer
    return step.parent if step is not None and step.parent.definition else None


def cannot_unmarshal(value: Any, place: FieldPath, type_: str = "") -> str:
    """`type_`: what Go wanted, if it is not the field's own type."""
    steps: list[FieldPath] = []
    step: FieldPath | None = place
    while step is not None:
        steps.append(step)
        step = step.outer
    inside = next(n for n, step in enumerate(steps) if step.parent.type is Type.OBJECT)
    names = [str(step.key) for step in reversed(steps) if step.parent.definition]
    wanted = type_ or _element(go_type(steps[inside].parent.fields[str(steps[inside].key)]), inside)
    found = _json_name(value, exact=wanted in ("int32", "int64"))
    struct = steps[inside].parent.name
    return (
        f"json: cannot unmarshal {found} into Go struct field {struct}.{'.'.join(names)} "
        f"of type {wanted}"
    )


def cannot_unmarshal_all(value: Any, schema: Schema) -> str:
    """The value is all that Go was asked to decode: metadata of a custom object."""
    found = _json_name(value, exact=False)
    return f"json: cannot unmarshal {found} into Go value of type {go_type(schema)}"


def _json_name(value: Any, *, exact: bool) -> str:
    """`exact`: a number that does not fit is shown."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return f"number {value!r}" if exact else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _element(type_: str, depth: int) -> str:
    """The type inside `depth` lists and maps."""
    for _ in range(depth):
        type_ = type_.removeprefix("[]") if type_.startswith("[]") else type_.partition("]")[2]
    return type_


def go_type(schema: Schema) -> str:
    """The Go type that the definition suggests; named strings and their like are plain here."""
    if schema.definition:
        *_, package, name = schema.definition.split(".")
        return f"{package}.{name}"
    match schema.type:
        case Type.LIST:
            return f"[]{go_type(schema.items)}" if schema.items else "[]interface {}"
        case Type.MAP:
            return f"map[string]{go_type(schema.items)}" if schema.items else ""
        case Type.INTEGER:
            return schema.integer_format or "int64"
        case other:
            return _GO_TYPES.get(other, "interface {}")


_GO_TYPES = {
    Type.STRING: "string",
    Type.BOOLEAN: "bool",
    Type.NUMBER: "float64",
    Type.BYTES: "[]uint8",
}


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
