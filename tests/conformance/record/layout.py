"""Writes JSON that people can read and compare, in few bytes."""

from __future__ import annotations

import json

from tests.conformance.record.case import Json

_WIDTH = 100


def laid_out(value: Json, depth: int = 0) -> str:
    """What fits on a line stays on a line; the rest is broken, one blank for each level."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + depth <= _WIDTH or not isinstance(value, dict | list):
        return flat
    inside = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key, ensure_ascii=False)}: {laid_out(item, depth + 1)}"
            for key, item in value.items()
        ]
        return "{" + inside + f",{inside}".join(items) + "\n" + " " * depth + "}"
    rows = [laid_out(item, depth + 1) for item in value]
    return "[" + inside + f",{inside}".join(rows) + "\n" + " " * depth + "]"
