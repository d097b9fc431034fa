"""Table: typed rows, and how each column of them is shown. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, TypeAlias, TypeVar

from gpupool.cli.output.layout import Layout

Row = TypeVar("Row")
Document: TypeAlias = dict[str, Any]  # what becomes JSON or YAML
API_VERSION = "cli.gpupool.io/v1"


class Tone(Enum):
    """What a cell means; `text.py` knows its colour."""

    PLAIN = auto()
    GOOD = auto()
    CAUTION = auto()
    BAD = auto()
    FAINT = auto()


class Shorten(Enum):
    """Where a long text may lose characters, on a terminal that is too narrow for it."""

    NEVER = auto()
    MIDDLE = auto()  # names: their ends tell them apart
    END = auto()  # sentences
    PREFIX = auto()  # identifiers: so much of their beginning stays that they can be told apart


def _plain(_row: object) -> Tone:
    return Tone.PLAIN


def _no_link(_row: object) -> str:
    return ""


@dataclass(frozen=True)  # no slots: Column[Row](...) could not be written then (Python 3.11)
class Column(Generic[Row]):
    title: str
    text: Callable[[Row], str]
    right: bool = False  # numbers
    wide: bool = False  # shown with -o wide only
    shorten: Shorten = Shorten.NEVER
    least: int = 12  # characters that a shortened text keeps
    readable: int = 30  # and that it keeps as long as another column can be left out
    # Where a terminal is too narrow, columns of the highest rank are shortened first, and left out
    # if that does not suffice. 0: never left out.
    rank: int = 0
    optional: bool = False  # left out on a terminal when it is empty in all rows
    tone: Callable[[Row], Tone] = _plain
    link: Callable[[Row], str] = _no_link  # where a click on the cell leads


@dataclass(frozen=True)
class Table(Generic[Row]):
    kind: str  # of one row: Card. The document of all rows is a CardList
    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    fields: Callable[[Row], Document]  # of one row, with the names of docs/output.md
    name: Callable[[Row], str] | None = None  # for -o name
    empty: str = ""  # what people read when there are no rows

    def lines(self, layout: Layout) -> list[str]:
        from gpupool.cli.output.text import table_lines

        return table_lines(self, layout)

    def document(self) -> Document:
        items = [self.fields(row) for row in self.rows]
        return {"apiVersion": API_VERSION, "kind": f"{self.kind}List", "items": items}

    def names(self) -> list[str]:
        return [] if self.name is None else [self.name(row) for row in self.rows]

    def missing(self) -> str:
        return "" if self.rows else self.empty
