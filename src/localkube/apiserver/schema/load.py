"""Schemas of Kubernetes' own kinds, from data/definitions.json.

The file is parsed when the first schema is asked for (2 ms); a definition becomes a Schema when
something first refers to it. All kinds share one Schema per definition.
"""

from functools import cache
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver import data
from localkube.apiserver.schema.build import fill
from localkube.apiserver.schema.node import Schema, Type

_APIMACHINERY = "io.k8s.apimachinery.pkg"
OBJECT_META = f"{_APIMACHINERY}.apis.meta.v1.ObjectMeta"
_GVK = "x-kubernetes-group-version-kind"
# Definitions say `type: object` or nothing of these; Go has decoders of its own for them.
_RAW = frozenset(
    {
        f"{_APIMACHINERY}.runtime.RawExtension",
        f"{_APIMACHINERY}.apis.meta.v1.FieldsV1",
        f"{_APIMACHINERY}.apis.meta.v1.Patch",
    }
)
_QUANTITY = f"{_APIMACHINERY}.api.resource.Quantity"


@cache
def schema_of(group: str, version: str, kind: str) -> Schema:
    """Raises KeyError for what is not served."""
    return definition(definition_names()[group, version, kind])


@cache
def definition(name: str) -> Schema:
    """The Schema of one definition: schema_of's, or a part such as ObjectMeta."""
    if name in _building:
        return _building[name]
    schema = _building[name] = Schema(name=name.rpartition(".")[2], definition=name)
    fill(schema, definitions()[name], definition)
    if name in _RAW:
        schema.type = Type.ANY
    elif name == _QUANTITY:
        schema.type = Type.QUANTITY
    del _building[name]
    return schema


_building: dict[str, Schema] = {}


@cache
def definitions() -> dict[str, Obj]:
    """OpenAPI definitions by name; a `$ref` holds the bare name, descriptions are left out."""
    found: dict[str, Obj] = _file()["definitions"]
    return found


def digest() -> str:
    """Changes with the definitions and their descriptions."""
    return str(_file()["digest"])


@cache
def definition_names() -> dict[tuple[str, str, str], str]:
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, node in definitions().items()
        for gvk in node.get(_GVK, ())
    }


@cache
def _file() -> Any:
    return data.read("definitions.json")
