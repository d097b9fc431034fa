"""Go's names of field types, for error texts: `cannot unmarshal ... of type v1.Protocol`.

Most follow from the definitions (`string`, `[]v1.Container`); kept are those that do not.
"""

from __future__ import annotations

from tools.schemas.definitions import Node
from tools.schemas.gotypes import Field, GoTypes, printed
from tools.schemas.protobuf import go_name

_PLAIN = {"string": "string", "boolean": "bool", "number": "float64", "object": "map[string]"}


def unexpected(types: GoTypes, served: dict[str, Node]) -> dict[str, dict[str, str]]:
    found = {}
    for name, node in served.items():
        fields = {
            field: shown
            for field, declared in _fields(types, go_name(name)).items()
            if field in node.get("properties", {})
            and (shown := printed(declared.value_type)) != expected(node["properties"][field])
        }
        if fields:
            found[name] = dict(sorted(fields.items()))
    return found


def expected(node: Node) -> str:
    """The name that the definition suggests."""
    if "$ref" in node:
        *_, package, name = node["$ref"].split(".")
        return f"{package}.{name}"
    match node.get("type"):
        case "integer":
            return str(node.get("format", "int64"))
        case "array":
            return "[]" + expected(node["items"]).removeprefix("*")
        case "object":
            return "map[string]" + expected(node.get("additionalProperties", {}))
        case "string" if node.get("format") == "byte":
            return "[]uint8"
        case type_:
            return _PLAIN.get(type_ or "", "")


def _fields(types: GoTypes, name: str) -> dict[str, Field]:
    """By JSON name, inlined structs included."""
    declared = types.find(name)
    found: dict[str, Field] = {}
    for field in (declared.fields or ()) if declared else ():
        found |= {field.json: field} if field.json else _fields(types, field.value_type)
    return found
