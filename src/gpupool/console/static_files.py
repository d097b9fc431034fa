"""The style sheets and scripts of pages. They are read once, and their address changes with them.

So a browser asks for each of them once, and not with every page.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from gpupool.console.percents import percent_rules

_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FIRST_MODULE = "console.js"  # which imports the others


@dataclass(frozen=True, slots=True)
class StaticFile:
    text: str
    kind: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """By name. Whoever looks a name up here is led nowhere else."""
    folder = resources.files("gpupool.console") / "static"
    texts = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    texts["percents.css"] = percent_rules()
    return {
        name: StaticFile(text, _KINDS[name.rpartition(".")[2]])
        for name, text in sorted(texts.items())
    }


@cache
def static_mark() -> str:
    """Differs when any of the files does."""
    found = hashlib.sha256()
    for name, file in static_files().items():
        found.update(f"{name}\0{file.text}\0".encode())
    return found.hexdigest()[:12]


def other_modules() -> tuple[str, ...]:
    """All that the first module needs, in one step or several."""
    return tuple(name for name in static_files() if name.endswith(".js") and name != FIRST_MODULE)
