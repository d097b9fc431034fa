"""What is not a table: a record of a few lines, and prose. Pure."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gpupool.cli.output.layout import Layout
from gpupool.cli.output.table import API_VERSION, Document, Shorten, Tone
from gpupool.cli.output.text import clean, linked, shortened, toned


class Page(Protocol):
    """Whatever a command can print."""

    def lines(self, layout: Layout) -> list[str]: ...

    def document(self) -> Document: ...

    def names(self) -> list[str]: ...

    def missing(self) -> str:
        """What people read in its place; empty: there is something to show."""


class Entry(NamedTuple):
    label: str
    text: str
    tone: Tone = Tone.PLAIN
    link: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing, as lines of `Label:  text`."""

    kind: str
    entries: Sequence[Entry]
    fields: Document

    def lines(self, layout: Layout) -> list[str]:
        width = max((len(entry.label) for entry in self.entries), default=0) + 3
        return [
            f"{entry.label + ':':{width}}"
            + linked(toned(clean(entry.text), entry.tone, layout), entry.link, layout)
            for entry in self.entries
        ]

    def document(self) -> Document:
        return {"apiVersion": API_VERSION, "kind": self.kind, **self.fields}

    def names(self) -> list[str]:
        return []

    def missing(self) -> str:
        return ""


class Line(NamedTuple):
    """Of prose. On a terminal it goes on below, behind `indent` blanks."""

    text: str
    tone: Tone = Tone.PLAIN  # of the first `toned` characters
    toned: int = 0
    indent: int = 0
    is_command: bool = False  # people paste it: it stays one line


@dataclass(frozen=True, slots=True)
class Prose:
    """Sentences for people, and the same as a document for programs."""

    kind: str
    text: Sequence[Line]
    fields: Document = field(default_factory=dict)
    wraps: bool = True  # False: a format that others parse

    def lines(self, layout: Layout) -> list[str]:
        return [part for line in self.text for part in self._wrapped(line, layout)]

    def document(self) -> Document:
        return {"apiVersion": API_VERSION, "kind": self.kind, **self.fields}

    def names(self) -> list[str]:
        return []

    def missing(self) -> str:
        return ""

    def _wrapped(self, line: Line, layout: Layout) -> list[str]:
        text = clean(line.text)
        parts = [text]
        if layout.width is not None and len(text) > layout.width:
            if self.wraps and not (line.is_command and not layout.live):
                parts = _broken(text, layout.width, line.indent, words=layout.live)
            elif layout.live:
                parts = [shortened(text, layout.width, Shorten.END, layout.ellipsis)]
        head, rest = parts[0][: line.toned], parts[0][line.toned :]
        return [toned(head, line.tone, layout) + rest, *parts[1:]]


def _broken(text: str, width: int, indent: int, *, words: bool) -> list[str]:
    """Between words, so that a long name can be copied. `words`: where needed, inside of them."""
    before = " " * (len(text) - len(text.lstrip(" ")))
    broken = textwrap.wrap(
        text.lstrip(" "),
        max(width, 20),
        initial_indent=before,
        subsequent_indent=" " * indent,
        break_long_words=words,
        break_on_hyphens=False,
    )
    return broken or [""]  # of nothing but blanks, nothing is left
