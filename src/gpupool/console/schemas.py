"""What the API server's own OpenAPI says about a place in a manifest: fields, types, values.

The documents are read with the visitor's rights, and never given out whole.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.objects import Obj

_GOOD_FOR_S = 300.0
_MOST_DOCUMENTS = 12
_MOST_STEPS = 32  # of a path, and of references to references
_HELP = 160
_API_VERSION = re.compile(r"([a-z0-9.-]{1,253}/)?[a-z0-9]{1,63}")
_KINDS = "x-kubernetes-group-version-kind"
_NOT_SHOWN = frozenset({"default", "format", "pattern", "x-kubernetes-validations"})


@dataclass(frozen=True, slots=True)
class Named:
    """A field, or a value that a field can have."""

    name: str
    type: str = ""  # object, array, string ...; empty: it is a value
    help: str = ""
    is_required: bool = False


# Where nobody has said yet what it is to be.
_OF_EVERY_OBJECT = (
    Named("apiVersion", "string", is_required=True),
    Named("kind", "string", is_required=True),
    Named("metadata", "object", is_required=True),
    Named("spec", "object"),
)


@dataclass(slots=True)
class Documents:
    """What was read last, for all visitors: a document is some megabytes. Its name has a hash of
    its content, and comes from the index that each visitor reads with their own rights."""

    _kept: OrderedDict[str, Obj] = field(default_factory=OrderedDict)

    def get(self, name: str) -> Obj | None:
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def keep(self, name: str, schemas: Obj) -> None:
        self._kept[name] = schemas
        while len(self._kept) > _MOST_DOCUMENTS:
            self._kept.popitem(last=False)


@dataclass(slots=True)
class Schemas:
    kube: Kube
    clock: Callable[[], float]
    documents: Documents = field(default_factory=Documents)
    _index: tuple[float, dict[str, str]] = (float("-inf"), {})

    async def fields(self, api_version: str, kind: str, path: tuple[str, ...]) -> list[Named]:
        """Of the object at the path; lists are passed through. Raises KubeError."""
        schemas = await self._schemas(api_version)
        schema = schema_of(schemas, api_version, kind)
        return fields_at(schemas, schema, path) if schema or path else list(_OF_EVERY_OBJECT)

    async def values(self, api_version: str, kind: str, path: tuple[str, ...]) -> list[Named]:
        """That the field at the path can have; none: any. Raises KubeError."""
        if path == ("apiVersion",):
            return [Named(name) for name in sorted(await self._versions())]
        schemas = await self._schemas(api_version)
        if path == ("kind",):
            return [Named(name) for name in kinds_in(schemas, api_version)]
        return values_at(schemas, schema_of(schemas, api_version, kind), path)

    async def whole(self, api_version: str, kind: str) -> tuple[Obj, Obj] | None:
        """All schemas of a version, and that of the kind: empty if the server has no such kind.
        None: the server describes nothing. Raises KubeError."""
        if not await self._versions():
            return None
        schemas = await self._schemas(api_version)
        return schemas, schema_of(schemas, api_version, kind)

    async def _versions(self) -> dict[str, str]:
        """The name of the document of each, with its hash."""
        if self._index[0] < self.clock():
            paths = (await self._page("/openapi/v3")).get("paths") or {}
            names = {
                path.removeprefix("apis/").removeprefix("api/"): each.get("serverRelativeURL", "")
                for path, each in paths.items()
            }
            found = {k: v for k, v in names.items() if _API_VERSION.fullmatch(k)}
            self._index = (self.clock() + _GOOD_FOR_S, found)
        return self._index[1]

    async def _schemas(self, api_version: str) -> Obj:
        name = (await self._versions()).get(api_version)
        if name is None:
            return {}
        if (known := self.documents.get(name)) is not None and "hash=" in name:
            return known
        under = "apis" if "/" in api_version else "api"
        document = await self._page(f"/openapi/v3/{under}/{api_version}")
        schemas = _each((document.get("components") or {}).get("schemas") or {})
        self.documents.keep(name, schemas)
        return schemas

    async def _page(self, path: str) -> Obj:
        try:
            return await self.kube.page(path)
        except NotFound:
            return {}


def _slim(schema: Any) -> Any:
    """Without what nobody is shown: most of it is prose."""
    if isinstance(schema, list):
        return [_slim(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _slim(each) for key, each in schema.items() if key not in _NOT_SHOWN}
    if isinstance(schema.get("properties"), dict):
        found["properties"] = _each(schema["properties"])
    if isinstance(schema.get("description"), str):
        found["description"] = _first(schema["description"])
    return found


def _each(named: Obj) -> Obj:
    """The keys are names of fields, whatever they are."""
    return {name: _slim(each) for name, each in named.items()}


def _first(words: str) -> str:
    return words.partition(". ")[0].partition("\n")[0][:_HELP]


def schema_of(schemas: Obj, api_version: str, kind: str) -> Obj:
    """Empty: there is none."""
    found = (each for each in schemas.values() if (api_version, kind) in _kinds_of(each))
    return next(found, {})


def kinds_in(schemas: Obj, api_version: str) -> list[str]:
    """Those that somebody could write down: with metadata of their own."""
    return sorted(
        {
            kind
            for each in schemas.values()
            for version, kind in _kinds_of(each)
            if version == api_version and "metadata" in (each.get("properties") or {})
            if not kind.endswith("List")
        }
    )


def _kinds_of(schema: Obj) -> Iterator[tuple[str, str]]:
    for each in schema.get(_KINDS) or ():
        group, version = each.get("group") or "", each.get("version") or ""
        yield (f"{group}/{version}" if group else version), each.get("kind") or ""


def fields_at(schemas: Obj, schema: Obj, path: tuple[str, ...]) -> list[Named]:
    found = _items(schemas, _at(schemas, schema, path))
    needed = set(found.get("required") or ())
    named = [
        _named(schemas, name, each, name in needed)
        for name, each in (found.get("properties") or {}).items()
    ]
    # Those that are needed come first, and what nobody writes comes last.
    return sorted(named, key=lambda each: (not each.is_required, each.name == "status", each.name))


def values_at(schemas: Obj, schema: Obj, path: tuple[str, ...]) -> list[Named]:
    found = _items(schemas, _at(schemas, schema, path))
    if found.get("type") == "boolean":
        return [Named("true"), Named("false")]
    return [Named(str(each)) for each in found.get("enum") or () if each not in ("", None)]


def _named(schemas: Obj, name: str, schema: Obj, is_required: bool) -> Named:
    whole = resolved(schemas, schema)
    kind = str(whole.get("type") or ("object" if whole.get("properties") else "any"))
    # One field may be called "description".
    words = schema.get("description") or whole.get("description")
    return Named(name, kind, _first(words) if isinstance(words, str) else "", is_required)


def _at(schemas: Obj, schema: Obj, path: tuple[str, ...]) -> Obj:
    """Empty: there is no such place."""
    for step in path[:_MOST_STEPS]:
        found = _items(schemas, schema)
        named = (found.get("properties") or {}).get(step) or found.get("additionalProperties")
        schema = named if isinstance(named, dict) else {}
    return schema


def _items(schemas: Obj, schema: Obj) -> Obj:
    """Of a list, what its items are."""
    for _ in range(_MOST_STEPS):
        schema = resolved(schemas, schema)
        items = schema.get("items")
        if schema.get("type") != "array" or not isinstance(items, dict):
            return schema
        schema = items
    return {}


def resolved(schemas: Obj, schema: Obj) -> Obj:
    """Without references. A schema of one part (allOf) is that part."""
    for _ in range(_MOST_STEPS):
        parts = schema.get("allOf")
        if "$ref" in schema:
            schema = schemas.get(str(schema["$ref"]).rpartition("/")[2]) or {}
        elif isinstance(parts, list) and len(parts) == 1 and "properties" not in schema:
            schema = {**{k: v for k, v in schema.items() if k != "allOf"}, **parts[0]}
        else:
            return schema
    return {}
