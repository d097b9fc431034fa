"""Objects as the API server's internal Go types print: in error texts and in diffs.

internal.json (made by tools/shapes) has the fields of each type, in order.
"""

import difflib
import json
from functools import cache
from importlib import resources
from typing import Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import Printed, escaped

# These stand in the pod's spec, but in its security context inside the server.
_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_HEADS = ("---", "+++")
# Comparing takes time with the square of it; nobody reads more anyway.
_MOST_LINES = 10_000


def printed(value: Any, type_name: str) -> Printed:
    """`type_name`: "core.Taint", or "[]core.Taint" for a list."""
    made = _content(value, type_name)
    return Printed(escaped(json.dumps(made, ensure_ascii=False, separators=(",", ":"))))


def difference(old: Obj, new: Obj, type_name: str) -> str:
    """A unified diff of both as indented JSON."""
    before, after = (_lines(value, type_name) for value in (old, new))
    if len(before) + len(after) > _MOST_LINES:
        return ""
    return "".join(line for line in difflib.unified_diff(before, after) if line[:3] not in _HEADS)


def _lines(value: Obj, type_name: str) -> list[str]:
    text = escaped(json.dumps(_content(value, type_name), ensure_ascii=False, indent=1))
    return [f"{line}\n" for line in text.split("\n")]


def _content(value: Any, kind: Any) -> Any:
    """`kind` as in internal.json: a type, or a list of the zero value, or null for plain JSON."""
    if isinstance(kind, list):
        return kind[0] if value is None else value
    if kind is None:
        return _sorted(value)
    if kind.startswith("*"):
        return None if value is None else _struct(value, kind[1:])
    if kind.startswith("[]"):
        return None if value is None else [_struct(item, kind[2:]) for item in value]
    if kind.startswith("{}"):
        return None if value is None else {k: _struct(value[k], kind[2:]) for k in sorted(value)}
    return _struct(value or {}, kind)


def _struct(value: Obj, type_name: str) -> Obj:
    if type_name == "core.PodSpec":
        moved = {name: value[name] for name in _HOST_FIELDS if name in value}
        value = value | {"securityContext": value.get("securityContext", {}) | moved}
    # Inside, an object's metadata is part of the object itself.
    value = value.get("metadata", {}) | value
    made: Obj = {}
    for name, source, omitted, kind in _types()[type_name] or ():
        inner = value.get(source)
        if inner or not omitted:
            made[name] = _content(inner, kind)
    return made


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@cache
def _types() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("internal.json").read_bytes()
    types: dict[str, Any] = orjson.loads(text)
    return types
