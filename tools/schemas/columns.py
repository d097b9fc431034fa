"""columns.json: the columns that kube-apiserver prints for each resource, and their descriptions.

They are facts about a real server; tests/conformance/record/tables.py records them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from localkube.apiserver.tables.rows import ROWS

_FIXTURES = Path(__file__).resolve().parents[2] / "tests/conformance/fixtures"
# Its two columns are those of every kind that the server has no printer for.
_DEFAULT = "rbac.authorization.k8s.io/roles"


def columns() -> dict[str, Any]:
    """`columns` by group/resource, each with the number of its text in `descriptions`."""
    recorded = json.loads((_FIXTURES / "tables.json").read_bytes())
    recorded |= {"autoscaling/scales": _scales(), "": recorded[_DEFAULT]}
    descriptions: dict[str, int] = {}
    found = {}
    for resource, table in sorted(recorded.items()):
        if resource and resource not in ROWS:
            continue
        found[resource] = [
            [
                column["name"],
                column["type"],
                column["format"],
                descriptions.setdefault(column["description"], len(descriptions)),
                column["priority"],
            ]
            for column in table["columns"]
        ]
    return {"columns": found, "descriptions": list(descriptions)}


def _scales() -> dict[str, Any]:
    """A Scale cannot be listed, so that its columns were recorded with the requests."""
    requests = json.loads((_FIXTURES / "requests.json").read_bytes())
    recorded = next(each for each in requests if each["name"] == "table: of a scale")
    return {"columns": recorded["response"]["columnDefinitions"]}
