"""Kubernetes' own kinds, from data/kinds.json (made by tools/schemas)."""

from typing import Any

from localkube.apiserver import data
from localkube.apiserver.kinds import Kind, Subresource

_TUPLES = ("verbs", "short_names", "categories", "selectable")


def builtin_kinds() -> list[Kind]:
    """In the order of a real server's discovery: groups by priority, resources by name."""
    return [_kind(row) for row in data.read("kinds.json")]


def _kind(row: dict[str, Any]) -> Kind:
    for key in _TUPLES:
        row[key] = tuple(row.get(key, ()))
    row["subresources"] = tuple(
        Subresource(**{**sub, "verbs": tuple(sub["verbs"])}) for sub in row.get("subresources", ())
    )
    row.setdefault("namespaced", False)
    return Kind(**row)
