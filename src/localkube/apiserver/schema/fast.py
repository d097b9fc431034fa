"""The fast check: one call into C that says whether an object is clean.

Each Schema becomes a msgspec type that accepts only values in which the slow check
(schema/check.py) would find nothing wrong and nothing to change: no unknown fields, no nulls but
for times (defaults/shape.py sees to those), numbers in range, quantities as text, times in the form
in which they are stored. A no only means: look closer.
"""

from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec

from localkube.apiserver.schema.node import Schema, Type

_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
# Narrower than what is allowed, but wide enough for what people write.
_QUANTITY = r"^[+-]?[0-9]{1,18}(\.[0-9]{1,9})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?\Z"
_DATE = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}"
_TIMES: dict[str, Any] = {
    "Time": Annotated[str, msgspec.Meta(pattern=_DATE + r"Z\Z")],
    "MicroTime": Annotated[str, msgspec.Meta(pattern=_DATE + r"\.[0-9]{6}Z\Z")],
}
_SCALARS: dict[Type, Any] = {
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.NUMBER: float,
    Type.BOOLEAN: bool,
    Type.INT_OR_STRING: _INT32 | str,
    Type.QUANTITY: Annotated[str, msgspec.Meta(pattern=_QUANTITY)],
    Type.ANY: dict[str, Any] | list[Any] | str | int | float | bool,
}
# Accepts nothing: stands for a definition inside itself (only JSONSchemaProps is such), so that
# these values take the slow way.
_NEVER = Literal["\0"]
_MOST_FIELDS = 2_000  # making a type of more takes so long that others would wait


def is_clean(value: object, schema: Schema) -> bool:
    try:
        msgspec.convert(value, schema.fast_type or _type(schema))
    except msgspec.ValidationError:
        return False
    return True


def _type(schema: Schema) -> Any:
    if schema.fast_type is None:
        schema.fast_type = _NEVER
        made = _made(schema)
        schema.fast_type = made | None if schema.nullable else made
    return schema.fast_type


def _made(schema: Schema) -> Any:
    match schema.type:
        case Type.OBJECT:
            return _struct(schema)
        case Type.MAP:
            return GenericAlias(dict, (str, _element(schema)))
        case Type.LIST:
            return GenericAlias(list, (_element(schema),))
        case Type.INTEGER:
            return _INT32 if schema.integer_format == "int32" else _INT64
        case Type.TIME:
            return _TIMES[schema.name] | None
        case other:
            return _SCALARS[other]


def _element(schema: Schema) -> Any:
    return _type(schema.items) if schema.items else Any


def _struct(schema: Schema) -> Any:
    if len(schema.fields) > _MOST_FIELDS:
        return _NEVER
    # Numbered, because field names such as $ref or type are no good as Python names.
    fields = [
        (f"f{number}", _type(field), msgspec.UNSET)
        for number, field in enumerate(schema.fields.values())
    ]
    made = msgspec.defstruct(
        schema.name or "Fields",
        fields,
        rename={f"f{number}": name for number, name in enumerate(schema.fields)},
        forbid_unknown_fields=not schema.preserve_unknown,
        gc=False,
        kw_only=True,
    )
    # msgspec looks at a type when it first converts to it, and remembers what it saw. Now, and not
    # with the outermost type: one call into C for 30,000 fields would keep all threads waiting.
    msgspec.convert({}, made)
    return made
