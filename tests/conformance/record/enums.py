"""Records which values a field may have, where the server's OpenAPI documents tell it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.conformance.record.client import Client


def record(client: Client) -> dict[str, Any]:
    """By definition and field: `enum`, of the field or of its items, and the description."""
    # It calls this text.
    index = json.loads(client.send("GET", "/openapi/v3").response)["paths"]
    found: dict[str, Any] = {}
    for path in sorted(index):
        document = client.send("GET", index[path]["serverRelativeURL"]).response
        for name, node in document.get("components", {}).get("schemas", {}).items():
            fields = _fields(node.get("properties", {}))
            if fields:
                found[name] = fields
    return dict(sorted(found.items()))


def _fields(properties: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, field in properties.items():
        values = field.get("enum") or field.get("items", {}).get("enum")
        if values:
            found[name] = {"enum": values, "description": field.get("description", "")}
    return found
