"""What can be asked of the server, by its own OpenAPI documents: operations, values of schemas."""

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from tests.faults.mutation import STRANGE

Json = Any
_METHODS = ("get", "post", "put", "patch", "delete")
_DEEPEST = 6
_PREFIX = "#/components/schemas/"
_TEXTS = (
    *("a", "b", "x", "", "Always", "Never", "True", "default", "a.b/c", "80", "TCP", "10.0.0.1"),
    *("*", "Retain", "Delete", "ReadWriteOnce", "cpu", "v1", "apps/v1", "Pod", "* * * * *", "100%"),
)
_BY_FORMAT: dict[str, tuple[Json, ...]] = {
    "int32": (0, 1, 2, 80, -1, 2**31 - 1, -(2**31), 2**31),
    "int64": (0, 1, 30, -1, 2**63 - 1, -(2**63), 2**63),
    "double": (0.0, 1.5, -1, 1e308),
    "byte": ("", "AA==", "A", "!"),
    "date-time": ("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "x", "9999-12-31T23:59:59Z"),
    "int-or-string": (0, 1, "1", "50%", "x", -1, 2**31),
    "quantity": ("1", "0", "1Gi", "-1", "1e9", "9" * 30, "x", 1.5),
}


@dataclass(frozen=True)
class Operation:
    method: str
    path: str  # with {namespace} and {name} in it
    queries: tuple[str, ...]
    media: tuple[str, ...]
    schema: str  # of the body, or of the object that a patch changes; empty: none
    kind: str


class Document:
    """All groups together: the names of schemas are the same in each."""

    def __init__(self, parts: list[Json]) -> None:
        self.schemas: dict[str, Json] = {}
        self.operations: list[Operation] = []
        for part in parts:
            self.schemas |= part.get("components", {}).get("schemas", {})
            for path, item in part["paths"].items():
                self.operations += _operations(path, item)
        self.operations.sort(key=lambda each: (each.path, each.method))

    def value(self, schema: Json, draw: random.Random, depth: int = 0) -> Json:
        """A value that the schema allows, most of the time."""
        schema = self._resolved(schema)
        if draw.random() < 0.01:
            return draw.choice(STRANGE)
        kind, shape = schema.get("type"), schema.get("format", "")
        if schema.get("x-kubernetes-int-or-string"):
            shape = "int-or-string"
        if kind == "object" or "properties" in schema:
            return self._object(schema, draw, depth)
        if kind == "array":
            count = 0 if depth > _DEEPEST else draw.choice((0, 1, 1, 2))
            return [self.value(schema.get("items", {}), draw, depth + 1) for _ in range(count)]
        if shape in _BY_FORMAT:
            return draw.choice(_BY_FORMAT[shape])
        if kind == "boolean":
            return draw.random() < 0.5
        if kind == "integer":
            return draw.choice(_BY_FORMAT["int64"])
        return draw.choice(_TEXTS)

    def _object(self, schema: Json, draw: random.Random, depth: int) -> Json:
        fields = schema.get("properties", {})
        if not fields:
            more = schema.get("additionalProperties", {})
            keys = draw.sample(("a", "b", "cpu", "memory", ""), draw.choice((0, 1, 1, 2)))
            return {key: self.value(more or {}, draw, depth + 1) for key in keys}
        wanted = 0.0 if depth > _DEEPEST else 0.3
        needed = schema.get("required", ())
        return {
            name: self.value(field, draw, depth + 1)
            for name, field in fields.items()
            if draw.random() < (0.9 if name in needed else wanted)
        }

    def _resolved(self, schema: Json) -> Json:
        while isinstance(schema, dict) and ("$ref" in schema or "allOf" in schema):
            reference = schema.get("$ref") or schema["allOf"][0].get("$ref", "")
            schema = self.schemas.get(reference.removeprefix(_PREFIX), {})
        return schema if isinstance(schema, dict) else {}

    def spliced(self, body: Json, name: str, draw: random.Random) -> Json:
        """The body, with one field somewhere below replaced by a value of its own schema."""
        holder, schema = body, self._resolved({"$ref": _PREFIX + name})
        while isinstance(holder, dict) and schema.get("properties"):
            fields = schema["properties"]
            present = [key for key in holder if key in fields]
            key = draw.choice(present if present and draw.random() < 0.7 else list(fields))
            below = self._resolved(fields[key])
            inner = holder.get(key)
            if isinstance(inner, list) and inner and isinstance(inner[0], dict):
                below, inner = self._resolved(below.get("items", {})), draw.choice(inner)
            if not isinstance(inner, dict) or not inner or draw.random() < 0.2:
                if key not in ("apiVersion", "kind") or draw.random() < 0.05:
                    holder[key] = self.value(fields[key], draw, 2)
                break
            holder, schema = inner, below
        return body


def _operations(path: str, item: Json) -> Iterator[Operation]:
    for method in _METHODS:
        if method not in item:
            continue
        found = item[method]
        content = found.get("requestBody", {}).get("content", {})
        kind = found.get("x-kubernetes-group-version-kind", {}).get("kind", "")
        yield Operation(
            method.upper(),
            path,
            tuple(each["name"] for each in found.get("parameters", ()) if each["in"] == "query"),
            tuple(content),
            _schema_name(found, content, method),
            kind,
        )


def _schema_name(found: Json, content: Json, method: str) -> str:
    if method == "patch":  # the document says no more than "a patch"; the answer is the object
        content = found["responses"]["200"].get("content", {})
    for each in content.values():
        reference: str = each.get("schema", {}).get("$ref", "")
        return reference.removeprefix(_PREFIX)
    return ""


async def read_document(get: Callable[[str], Awaitable[bytes]]) -> Document:
    """From the server itself. `get`: the body of the answer to a path."""
    index = orjson.loads(await get("/openapi/v3"))
    urls = [each["serverRelativeURL"] for _, each in sorted(index["paths"].items())]
    return Document([orjson.loads(await get(url)) for url in urls])
