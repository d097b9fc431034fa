"""Values that do not fit their field, in the words of Go's converter from plain maps to structs.

Strategic merge patches go through that converter, where all other bodies go through the decoder.
"""

from collections.abc import Callable
from typing import Any

from localkube.apiserver.patch import go_text
from localkube.apiserver.schema.node import Schema, Type

_GO_SCALARS = {
    Type.STRING: "string",
    Type.BOOLEAN: "bool",
    Type.INTEGER: "int64",
    Type.NUMBER: "float64",
}
_FITTING: dict[Type, tuple[type, ...]] = {
    Type.STRING: (str,),
    Type.BOOLEAN: (bool,),
    Type.INTEGER: (int,),
    Type.NUMBER: (int, float),
}


def misfit(value: Any, schema: Schema) -> str:
    """The first misfit; empty when there is none that this converter would find."""
    if value is None:
        return ""
    found = _LOOKS.get(schema.type, _scalar)
    return found(value, schema)


def _object(value: Any, schema: Schema) -> str:
    if type(value) is not dict:
        return f"cannot restore struct from: {_kind(value)}"
    known = ((value[name], field) for name, field in schema.fields.items() if name in value)
    return next((text for inner, field in known if (text := misfit(inner, field))), "")


def _map(value: Any, schema: Schema) -> str:
    if type(value) is not dict:
        return f"cannot restore map from {_kind(value)}"
    assert schema.items is not None
    items = schema.items
    return next((text for inner in value.values() if (text := misfit(inner, items))), "")


def _list(value: Any, schema: Schema) -> str:
    if type(value) is not list:
        return f"cannot restore slice from {_kind(value)}"
    assert schema.items is not None
    items = schema.items
    return next((text for inner in value if (text := misfit(inner, items))), "")


def _scalar(value: Any, schema: Schema) -> str:
    wanted = _FITTING.get(schema.type)
    if wanted is None or type(value) in wanted:
        return ""
    go = schema.integer_format or _GO_SCALARS[schema.type]
    return f"cannot convert {go_text.type_name(value)} to {go}"


def _kind(value: Any) -> str:
    """reflect.Kind of a decoded JSON value."""
    if isinstance(value, dict):
        return "map"
    return "slice" if isinstance(value, list) else go_text.type_name(value)


_LOOKS: dict[Type, Callable[[Any, Schema], str]] = {
    Type.OBJECT: _object,
    Type.MAP: _map,
    Type.LIST: _list,
}
