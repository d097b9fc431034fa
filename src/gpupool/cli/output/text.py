"""Turns tables into lines of text that fit the terminal. Pure."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import click

from gpupool.cli.output.layout import Layout
from gpupool.cli.output.table import Column, Shorten, Table, Tone

Row = TypeVar("Row")
_GAP, _NARROW_GAP = 3, 2  # blanks between two columns
_COLOURS = {Tone.GOOD: "green", Tone.CAUTION: "yellow", Tone.BAD: "red"}


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    tone: Tone = Tone.PLAIN
    link: str = ""


@dataclass(frozen=True, slots=True)
class _Strip:
    """One column with its cells; `width` is what it gets."""

    column: Column[object]
    cells: tuple[_Cell, ...]
    width: int

    @property
    def least(self) -> int:
        if self.column.shorten is Shorten.NEVER:
            return self.width
        least = max(self.column.least, width_of(self.column.title))
        if self.column.shorten is Shorten.PREFIX:
            least = max(least, 1 + _telling_apart([cell.text for cell in self.cells]))
        return min(self.width, least)


def table_lines(table: Table[Row], layout: Layout) -> list[str]:
    """The header and a line for each row. On a terminal, no line is wider than it."""
    strips = [_strip(column, table.rows, layout) for column in _shown(table, layout)]
    gap, hint = _GAP, ""
    if layout.width is not None:
        if not layout.wide:
            strips = [each for each in strips if not each.column.optional or any(_texts(each))]
        is_all = _total(strips, _NARROW_GAP) <= layout.width
        hint = "" if is_all or not layout.headers else layout.hint
        strips, gap = _fitted(strips, layout.width)
    lines = [_line(strips, at, gap, layout) for at in range(len(table.rows))]
    if hint:
        cut = shortened(hint, layout.width or 0, Shorten.END, layout.ellipsis)
        lines.append(toned(cut, Tone.FAINT, layout))
    return [_header(strips, gap, layout), *lines] if layout.headers else lines


def width_of(text: str) -> int:
    """In columns of a terminal."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def shortened(text: str, width: int, where: Shorten, ellipsis: str = "…") -> str:
    if width_of(text) <= width:
        return text
    if width <= 1:
        return ellipsis[:width]
    kept = width - 1
    tail = kept // 2 if where is Shorten.MIDDLE else 0
    head = _first(text, kept - tail)
    return head + ellipsis + (_first(text[::-1], tail)[::-1] if tail else "")


def clean(text: str) -> str:
    """Without control characters: a text of the cluster must not move the cursor or ring a bell."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _visible(char) for char in text)


def toned(text: str, tone: Tone, layout: Layout) -> str:
    if not layout.colours or tone is Tone.PLAIN or not text:
        return text
    return click.style(text, fg=_COLOURS.get(tone), dim=True if tone is Tone.FAINT else None)


def linked(text: str, link: str, layout: Layout) -> str:
    """As terminals know links (OSC 8); others ignore it."""
    if not layout.links or not link or not text:
        return text
    return f"\x1b]8;;{clean(link)}\x1b\\{text}\x1b]8;;\x1b\\"


def _visible(char: str) -> str:
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _first(text: str, width: int) -> str:
    """As many characters as fit into the width."""
    if text.isascii():
        return text[:width]
    used = 0
    for at, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:at]
    return text


def _shown(table: Table[Row], layout: Layout) -> list[Column[Row]]:
    return [column for column in table.columns if layout.wide or not column.wide]


def _strip(column: Column[Row], rows: Sequence[Row], layout: Layout) -> _Strip:
    cells = tuple(
        _Cell(clean(column.text(row)), column.tone(row), column.link(row)) for row in rows
    )
    widths = [width_of(cell.text) for cell in cells]
    if layout.headers:
        widths.append(width_of(column.title))
    return _Strip(column, cells, max(widths, default=0))  # type: ignore[arg-type]  # rows are read


def _fitted(strips: list[_Strip], width: int) -> tuple[list[_Strip], int]:
    """Leaves out columns until the names in the others are readable, then shortens."""
    while _total(strips, _GAP) > width and _needs(strips) > width:
        rank = max((each.column.rank for each in strips), default=0)
        if not rank:
            break  # it cannot fit: its lines are cut
        strips = [each for each in strips if each.column.rank < rank]
    if _total(strips, _GAP) <= width:
        return strips, _GAP
    return _narrowed(strips, width), _NARROW_GAP


def _needs(strips: list[_Strip]) -> int:
    """The width in which the columns that always stay are still readable."""
    widths = (
        each.least if each.column.rank else max(each.least, min(each.width, each.column.readable))
        for each in strips
    )
    return sum(widths) + _NARROW_GAP * (len(strips) - 1)


def _narrowed(strips: list[_Strip], width: int) -> list[_Strip]:
    """Takes characters away until all fit: first from columns that would be left out next, and
    there from those that stay readable, the widest first."""
    strips = list(strips)
    while _total(strips, _NARROW_GAP) > width:
        can_give = [at for at, each in enumerate(strips) if each.width > each.least]
        if not can_give:
            break
        at = max(can_give, key=lambda at: _gives(strips[at]))
        strips[at] = replace(strips[at], width=strips[at].width - 1)
    return strips


def _gives(strip: _Strip) -> tuple[int, bool, int]:
    """Columns with the greatest give characters away first."""
    return strip.column.rank, strip.width > strip.column.readable, strip.width


def _telling_apart(texts: Sequence[str]) -> int:
    """How many characters from the beginning suffice to tell different texts apart."""
    return 1 + max((_alike(*pair) for pair in pairwise(sorted(set(texts)))), default=0)


def _alike(one: str, other: str) -> int:
    """How many characters from the beginning two texts share."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _texts(strip: _Strip) -> list[str]:
    return [cell.text for cell in strip.cells]


def _total(strips: Sequence[_Strip], gap: int) -> int:
    return sum(each.width for each in strips) + gap * (len(strips) - 1)


def _header(strips: Sequence[_Strip], gap: int, layout: Layout) -> str:
    titles = [_Cell(each.column.title) for each in strips]
    line = _joined(strips, titles, gap, layout)
    return click.style(line, bold=True) if layout.colours else line


def _line(strips: Sequence[_Strip], at: int, gap: int, layout: Layout) -> str:
    return _joined(strips, [each.cells[at] for each in strips], gap, layout)


def _joined(strips: Sequence[_Strip], cells: Sequence[_Cell], gap: int, layout: Layout) -> str:
    """Cells side by side. What does not fit even when all is shortened is cut off at the end."""
    line, used, blanks = "", 0, 0
    for strip, cell in zip(strips, cells, strict=True):
        space = strip.width
        if layout.width is not None:
            space = max(0, min(space, layout.width - used - blanks))
        shown = shortened(cell.text, space, strip.column.shorten, layout.ellipsis)
        missing = space - width_of(shown)
        before = missing if strip.column.right and shown else 0
        if shown:
            painted = linked(toned(shown, cell.tone, layout), cell.link, layout)
            line += " " * (blanks + before) + painted
            used, blanks = used + blanks + before + width_of(shown), 0
        blanks += missing - before + gap
    return line
