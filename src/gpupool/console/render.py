"""Templates into HTML. The template engine escapes every value.

A page is drawn inside the frame (top bar, side bar) when a browser opens it, and bare when it is
made again for a browser that has it open, or shown as a dialogue.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from gpupool.console.glossary import HEALTH, ISOLATION, WALLS
from gpupool.console.said import reason_cell, said, said_cell, shortly
from gpupool.console.static_files import scripts_of, static_mark
from gpupool.console.words import CHINESE, ENGLISH, Translate, word
from kubeclient.times import seconds_of

THEMES = ("auto", "light", "dark")
_STEPS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_CONDITIONS = {"True": word("yes"), "False": word("no"), "Unknown": word("not known")}
_LONGEST_WORD, _BREAKS = 24, re.compile(r"[\s-]")
_SHORT = 120.0  # seconds: below, an age is shown in them


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a page."""

    t: Translate
    language: str
    theme: str
    address: str  # of this page, with its query
    cluster: str = ""
    clusters: tuple[tuple[str, str], ...] = ()  # that can be gone to: name, address
    menu: str = ""  # the current entry
    entries: tuple[tuple[str, str, str], ...] = ()  # key, text, address
    namespace: str = ""
    namespaces: tuple[str, ...] | None = None  # None: the visitor may not list them
    notice: str = ""
    is_live: bool = False
    kept: tuple[tuple[str, str], ...] = ()  # the rest of the query, for the namespace selector

    @property
    def base(self) -> str:
        """The addresses of all pages of the cluster begin with it."""
        return cluster_address(self.cluster)

    @property
    def other_language(self) -> str:
        return ENGLISH if self.language == CHINESE else CHINESE

    @property
    def next_theme(self) -> str:
        return THEMES[(THEMES.index(self.theme) + 1) % len(THEMES)]


def cluster_address(cluster: str) -> str:
    """Names of contexts may have slashes: arn:aws:eks:eu-west-1:1234:cluster/training."""
    return f"/clusters/{quote(cluster, safe='')}"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("gpupool.console"),
        autoescape=True,  # of every template, whatever its name
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(health=HEALTH, isolation=ISOLATION, walls=WALLS, said=said)
    made.globals.update(said_cell=said_cell, reason_cell=reason_cell)
    made.globals.update(static=f"/static/{static_mark()}", scripts_of=scripts_of)
    made.globals.update(condition_word=condition_word, shortly=shortly)
    made.filters["age"] = age
    made.filters["is_short"] = is_short
    made.filters["exact"] = exact
    made.filters["middle"] = middle
    made.filters["with_query"] = with_query
    return made


def html(template: str, frame: Frame, values: Mapping[str, object], *, bare: bool = False) -> str:
    layout = "bare.html" if bare else "frame.html"
    found = _templates().get_template(template)
    return found.render(**values, frame=frame, t=frame.t, layout=layout)


def condition_word(t: Translate, status: object) -> str:
    """Of a condition: True, False, Unknown."""
    return t(_CONDITIONS.get(str(status), str(status)))


def age(at: str) -> str:
    """As kubectl shows it: 45s, 5m, 3h, 12d."""
    seconds = seconds_of(at)
    if seconds is None:
        return "–"
    passed = max(0.0, datetime.datetime.now(datetime.UTC).timestamp() - seconds)
    if passed < _SHORT:
        return f"{int(passed)}s"
    for size, letter in _STEPS:
        if passed >= 2 * size or size == 60:
            return f"{int(passed // size)}{letter}"
    return ""


def exact(at: str) -> str:
    return at.replace("T", " ").replace("Z", " UTC") if at else ""


def middle(text: str, most: int = 48) -> str:
    """Long names are shortened in the middle: beginning and end tell them apart."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def is_short(text: str) -> bool:
    """No word of it needs to be broken, however small the column."""
    return all(len(word) <= _LONGEST_WORD for word in _BREAKS.split(text))


def with_query(address: str, **changes: str) -> str:
    """The address with something added to its query."""
    joint = "&" if "?" in address else "?"
    return f"{address}{joint}{urlencode(changes)}"
