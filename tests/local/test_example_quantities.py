"""Amounts in examples are written as they are stored, as texts.

So `kubectl apply --server-side` finds no conflict with what `kubectl apply` wrote before.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

_EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.yaml"))


def _amounts(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _amounts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "resources" and isinstance(item, dict):
                for part in ("limits", "requests"):
                    yield from (item.get(part) or {}).values()
            else:
                yield from _amounts(item)


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.name)
def test_amounts_are_texts(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        assert all(isinstance(amount, str) for amount in _amounts(document))
