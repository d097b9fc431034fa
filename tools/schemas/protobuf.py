"""The protobuf field table: from the tags of the Go structs that the .proto files are made from.

Per message, by field number: [JSON name, code] or [JSON name, code, message]. An empty JSON name
means that the message's fields stand in the parent (Go's inlined structs). The code is

    an optional "[" (repeated) or "{" (map from string), then
    s text   i whole number   l boolean   d double   b bytes   m message
    q Quantity   t Time   u MicroTime   p Duration   n IntOrString   r raw JSON   x list of text
    a a message or several   o a message or a boolean   e a message or several texts
    then an optional "?": Go leaves the zero value out of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable

from tools.schemas.gotypes import Field, GoTypes

Row = list[str]
_SCALARS = {"string": "s", "bool": "l", "float64": "d", "[]byte": "b"} | dict.fromkeys(
    ("int", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), "i"
)
_META = "k8s.io/apimachinery/pkg/apis/meta/v1"
_CRD = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
_SPECIAL = {
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "q",
    f"{_META}.Time": "t",
    f"{_META}.MicroTime": "u",
    f"{_META}.Duration": "p",
    f"{_META}.FieldsV1": "r",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "n",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "r",
    "k8s.io/api/authentication/v1.ExtraValue": "x",
    "k8s.io/api/authorization/v1.ExtraValue": "x",
    "k8s.io/api/certificates/v1.ExtraValue": "x",
    f"{_CRD}.JSON": "r",
}
# In JSON they are one of several values; in protobuf, a message with a field for each of them.
_SCHEMA_OR = {
    f"{_CRD}.JSONSchemaPropsOrArray": "a",
    f"{_CRD}.JSONSchemaPropsOrBool": "o",
    f"{_CRD}.JSONSchemaPropsOrStringArray": "e",
}


def go_name(definition: str) -> str:
    """io.k8s.api.core.v1.Pod -> k8s.io/api/core/v1.Pod"""
    *package, name = definition.split(".")
    return "/".join(["k8s.io", *package[2:]]) + f".{name}"


def definition_name(go_type: str) -> str:
    package, _, name = go_type.rpartition(".")
    return ".".join(["io", "k8s", *package.split("/")[1:], name])


def table(types: GoTypes, roots: Iterable[str]) -> dict[str, dict[str, Row]]:
    """Messages by definition name, for the roots and all that they contain."""
    found: dict[str, dict[str, Row]] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        declared = types.find(go_name(name))
        if name in found or declared is None or declared.fields is None:
            continue
        found[name] = {str(f.number): _row(types, f) for f in declared.fields if f.number}
        waiting += [row[2] for row in found[name].values() if len(row) > 2]
    return dict(sorted(found.items()))


def _row(types: GoTypes, field: Field) -> Row:
    code, message = _code(types, field.value_type)
    if field.omitempty and not field.pointer and code in ("s", "i", "l", "d"):
        code += "?"
    if code == "n" and not field.pointer:
        code += "?"
    return [field.json, code, definition_name(message)] if message else [field.json, code]


def _code(types: GoTypes, type_: str) -> tuple[str, str]:
    """The code, and the message type if it is one."""
    if type_ in _SPECIAL:
        return _SPECIAL[type_], ""
    if type_ in _SCHEMA_OR:
        return _SCHEMA_OR[type_], f"{_CRD}.JSONSchemaProps"
    plain = types.underlying(type_)
    if plain in _SCALARS:
        return _SCALARS[plain], ""
    if plain.startswith("map["):
        code, message = _code(types, plain.partition("]")[2].removeprefix("*"))
        return "{" + code, message
    if plain.startswith("[]"):
        code, message = _code(types, plain[2:].removeprefix("*"))
        return "[" + code, message
    return "m", plain
