"""Cells: what can stand in a column of a table. `templates/parts/cells.html` draws each kind."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Level(StrEnum):
    """How much a state wants to be seen. Beside the colour there is always a sign and a word."""

    GOOD = "good"
    WAITS = "waits"  # waits, is idle, or takes more than its share
    BAD = "bad"  # sick, lost, failed
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    title: str = ""
    language: str = ""  # empty: that of the page
    original: str = ""  # what was said in English, if these are other words for it
    kind: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    href: str
    title: str = ""
    is_outside: bool = False  # leads away from the console: opens in a tab of its own
    kind: ClassVar[str] = "link"


@dataclass(frozen=True, slots=True)
class State:
    level: Level
    text: str
    title: str = ""
    kind: ClassVar[str] = "state"


@dataclass(frozen=True, slots=True)
class Age:
    """A moment, as the API writes it; shown as "5m", with the exact time on hover."""

    at: str
    kind: ClassVar[str] = "age"


@dataclass(frozen=True, slots=True)
class Bar:
    """So much of so much."""

    part: int
    whole: int
    text: str
    kind: ClassVar[str] = "bar"

    @property
    def percent(self) -> int:
        return min(100, 100 * self.part // self.whole) if self.whole else 0


@dataclass(frozen=True, slots=True)
class Several:
    """Cells one below the other."""

    cells: tuple["Cell", ...]
    kind: ClassVar[str] = "several"


Cell = Text | Link | State | Age | Bar | Several
