"""OpenAPI definitions of the served kinds, from kubernetes-validate.

That package edits Kubernetes' own definitions for its purpose (nullable types, choices instead of
formats, fixed apiVersion and kind); the edits are undone here. The result equals the definitions in
Kubernetes' swagger.json, with references cut down to the bare name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.schemas.metrics import METRICS_DEFINITIONS

Node = dict[str, Any]
_GVK = "x-kubernetes-group-version-kind"
# The only keys of associative lists that may be left out (`+default` in the Go types).
_DEFAULTS = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
}


def read(package: Path, version: str) -> dict[str, Node]:
    file = package / "kubernetes-json-schema" / f"v{version}.0-local" / "_definitions.json"
    edited = json.loads(file.read_text())["$defs"]
    definitions = {name: _original(node) for name, node in edited.items()}
    for (name, field), value in _DEFAULTS.items():
        definitions[name]["properties"][field]["default"] = value
    return definitions | METRICS_DEFINITIONS


def _original(node: Node) -> Node:
    result: Node = {}
    for key, value in node.items():
        match key:
            case "properties":
                result[key] = {name: _original(field) for name, field in value.items()}
            case "type" if isinstance(value, list):
                result[key] = value[0]
            case "$ref":
                result[key] = value.removeprefix("#/$defs/")
            case "oneOf":  # string or integer, string or number
                result["type"] = "string"
                if value[1]["type"][0] == "integer":
                    result["format"] = "int-or-string"
            case "enum":  # only on apiVersion and kind, where Kubernetes has none
                continue
            case "items" | "additionalProperties":
                result[key] = _original(value)
            case _:
                result[key] = value
    return result


def by_gvk(definitions: dict[str, Node]) -> dict[tuple[str, str, str], str]:
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, node in definitions.items()
        for gvk in node.get(_GVK, ())
    }


def closure(definitions: dict[str, Node], roots: Iterable[str]) -> dict[str, Node]:
    """The roots and everything that they refer to, sorted by name."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(definitions[name])
    return {name: definitions[name] for name in sorted(found)}


def _references(node: Node) -> list[str]:
    names = [node["$ref"]] if "$ref" in node else []
    for part in (node.get("items"), node.get("additionalProperties")):
        if part:
            names += _references(part)
    for field in node.get("properties", {}).values():
        names += _references(field)
    return names


def without_descriptions(node: Node) -> Node:
    bare = {key: value for key, value in node.items() if key != "description"}
    if "properties" in bare:
        bare["properties"] = {
            name: {key: value for key, value in field.items() if key != "description"}
            for name, field in bare["properties"].items()
        }
    return bare


def descriptions(node: Node) -> dict[str, str]:
    """By field; "" is the definition's own."""
    found = {"": node["description"]} if "description" in node else {}
    for name, field in node.get("properties", {}).items():
        if "description" in field:
            found[name] = field["description"]
    return found
