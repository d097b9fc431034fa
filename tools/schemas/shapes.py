"""shapes.json: how Go's JSON encoder treats each field of the types of the served kinds.

Only Go can tell, by reflection: tools/shapes is a Go program that prints the shapes of all kinds.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).resolve().parents[1] / "shapes"
# The metadata of custom objects has this shape, too.
_METADATA = "meta.v1.ObjectMeta"


def shapes(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """`kinds`: the name of each kind's shape; `shapes`: those, and the ones that they refer to."""
    shown = subprocess.run(["go", "run", "."], cwd=_PROGRAM, check=True, capture_output=True)
    return of_kinds(json.loads(shown.stdout), rows)


def of_kinds(document: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    served = {_key(each) for row in rows for each in (row, *row.get("subresources", ()))}
    kinds = {key: name for key, name in document["kinds"].items() if key in served}
    reached = _reached(document["shapes"], [_METADATA, *kinds.values()])
    return {
        "kinds": kinds,
        "shapes": {name: row for name, row in document["shapes"].items() if name in reached},
    }


def _key(kind: dict[str, Any]) -> str:
    return f"{kind['group']}/{kind['version']}/{kind['kind']}".removeprefix("/")


def _reached(shapes: dict[str, Any], roots: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            for part in ("fields", "maps"):
                waiting += shapes[name].get(part, {}).values()
    return reached
