"""A terminal's screen, as far as our commands use one: what each row showed, and when. Pure.

Rows are never lost: what a real terminal scrolls away stays here, and the picture scrolls itself.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

# What moves the cursor or deletes (`\x1b[2K`), what colours (`\x1b[1;32m`), and what only terminals
# of their own understand: titles, links, modes.
_PART = re.compile(
    r"\x1b\[(?P<numbers>[0-9;]*)(?P<order>[A-HJKm])"
    r"|(?P<other>\x1b\[\?[0-9;]*[hl]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>])"
    r"|(?P<control>[\r\n\b\t\x07])"
    r"|(?P<letter>[^\x1b])"
)
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


class Cell(NamedTuple):
    letter: str
    style: frozenset[str]  # bold, dim, and the name of a colour


class Version(NamedTuple):
    """What a row showed from this second on."""

    at_s: float
    cells: tuple[Cell, ...]


@dataclass
class Screen:
    width: int
    rows: list[list[Cell]] = field(default_factory=lambda: [[]])
    versions: list[list[Version]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    style: frozenset[str] = frozenset()

    def write(self, text: str, at_s: float) -> None:
        for part in _PART.finditer(text):
            if part["letter"]:
                self._put(part["letter"])
            elif part["control"]:
                self._control(part["control"])
            elif part["order"]:
                numbers = [int(each or 0) for each in part["numbers"].split(";")]
                self._order(part["order"], numbers)
        self._look(at_s)

    def _put(self, letter: str) -> None:
        if self.column >= self.width:
            self._go(self.row + 1)
            self.column = 0
        cells = self.rows[self.row]
        cells += [Cell(" ", frozenset())] * (self.column + 1 - len(cells))
        cells[self.column] = Cell(letter, self.style)
        self.column += 1

    def _control(self, control: str) -> None:
        if control == "\n":
            self._go(self.row + 1)
        elif control == "\r":
            self.column = 0
        elif control == "\b":
            self.column = max(0, self.column - 1)
        elif control == "\t":
            self.column = min(self.width, (self.column // 8 + 1) * 8)

    def _go(self, row: int) -> None:
        self.row = max(0, row)
        while len(self.rows) <= self.row:
            self.rows.append([])
            self.versions.append([])

    def _order(self, order: str, numbers: list[int]) -> None:
        if order == "m":
            for number in numbers:
                self._colour(number)
        elif order == "K":
            del self.rows[self.row][0 if numbers[0] == 2 else self.column :]
        elif order == "J":
            del self.rows[self.row][self.column :]
            for cells in self.rows[self.row + 1 :]:
                cells.clear()
        elif order in "AB":
            step = max(1, numbers[0])
            self._go(self.row + (step if order == "B" else -step))
        elif order == "G":
            self.column = max(0, numbers[0] - 1)
        elif order in "CD":
            step = max(1, numbers[0])
            self.column = max(0, self.column + (step if order == "C" else -step))

    def _colour(self, number: int) -> None:
        if number == 0:
            self.style = frozenset()
        elif number in (1, 2):
            self.style |= {"bold" if number == 1 else "dim"}
        elif number == 22:
            self.style -= {"bold", "dim"}
        elif 30 <= number <= 37 or 90 <= number <= 97:
            self.style = (self.style - set(_COLOURS)) | {_COLOURS[number % 10]}
        elif number == 39:
            self.style -= set(_COLOURS)

    def _look(self, at_s: float) -> None:
        for cells, versions in zip(self.rows, self.versions, strict=True):
            now = tuple(cells)
            if now != (versions[-1].cells if versions else ()):
                if versions and at_s - versions[-1].at_s < _TOO_SHORT_S:
                    versions[-1] = Version(versions[-1].at_s, now)
                else:
                    versions.append(Version(at_s, now))


_TOO_SHORT_S = 0.1  # nobody sees what is there for a shorter time
