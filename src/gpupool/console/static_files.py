"""The style sheets and scripts of pages. They are read once, and their address changes with them.

So a browser asks for each of them once, and not with every page.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from gpupool.console.percents import percent_rules

_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FIRST = "console.js"  # of every page
# A value cannot claim it: its quotes are escaped.
_NAMED = re.compile(r' data-script="(\w+)"')
_IMPORTS = re.compile(r'^import .* from "\./(\w+\.js)";$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StaticFile:
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Scripts:
    """Of one page. A browser is told of all, so that it asks for them at once."""

    started: tuple[str, ...]
    imported: tuple[str, ...]  # by those that are started


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


def scripts_of(page: str) -> Scripts:
    """Of the first module, and of those that elements of the page name: data-script="editor"."""
    named = {f"{name}.js" for name in _NAMED.findall(page)}
    started = (_FIRST, *sorted(named & static_files().keys()))
    imported = set[str]().union(*map(_imported, started)) - set(started)
    return Scripts(started, tuple(sorted(imported)))


@cache
def _imported(module: str) -> frozenset[str]:
    """All that it needs, in one step or several."""
    direct = _IMPORTS.findall(static_files()[module].text)
    return frozenset(direct).union(*map(_imported, direct))
