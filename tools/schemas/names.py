"""Go's names of fields and their types, for error texts:
`cannot unmarshal ... into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type ...`.

Most types follow from the definitions (`string`, `[]v1.Container`); kept are those that do not, and
the fields of embedded structs: "VolumeSource.emptyDir v1.EmptyDirVolumeSource".
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.schemas.definitions import Node
from tools.schemas.gotypes import Field, GoTypes, printed
from tools.schemas.protobuf import go_name

_PLAIN = {"string": "string", "boolean": "bool", "number": "float64"}


def unexpected(types: GoTypes, served: dict[str, Node]) -> dict[str, dict[str, str]]:
    found = {}
    for name, node in served.items():
        properties = node.get("properties", {})
        fields = {
            field.json: f"{path}{field.json} {shown}" if path else shown
            for path, field in _fields(types, go_name(name))
            if field.json in properties
            and ((shown := printed(field.value_type)) != expected(properties[field.json]) or path)
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
            return "[]" + expected(node["items"])
        case "object":
            return "map[string]" + expected(node.get("additionalProperties", {}))
        case "string" if node.get("format") == "byte":
            return "[]uint8"
        case type_:
            return _PLAIN.get(type_ or "", "")


def _fields(types: GoTypes, name: str, path: str = "") -> Iterator[tuple[str, Field]]:
    """With the embedded structs that a field lies in."""
    declared = types.find(name)
    for field in (declared.fields or ()) if declared else ():
        embedded = field.value_type.rpartition(".")[2]
        if field.json:
            yield path, field
        elif embedded != "TypeMeta":
            yield from _fields(types, field.value_type, f"{path}{embedded}.")
