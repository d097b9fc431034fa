"""Table: rows with columns that can be searched, filtered, sorted and linked to. Pure.

The address holds the whole state: `?q=text&pool=cgpu&sort=-created&page=2`. So every view of a list
can be sent to somebody else, and works without scripts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from gpupool.console.parts.cells import Cell

ROWS_A_PAGE = 100
_MOST_CHOICES = 50

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    key: str  # in the address
    label: str
    cell: Callable[[Row], Cell]
    sort: Callable[[Row], Any] | None = None  # None: the table cannot be sorted by it
    is_number: bool = False


@dataclass(frozen=True)
class Choice(Generic[Row]):
    """A filter by one value: pool, model, state."""

    key: str
    label: str
    value: Callable[[Row], str]
    word: Callable[[str], str] = str  # how a value is shown


@dataclass(frozen=True, slots=True)
class RowAction:
    """A button at the end of a row. `lacks`: why the visitor may not; empty: they may."""

    label: str
    href: str
    lacks: str = ""
    is_dangerous: bool = False
    is_page: bool = False  # leads to a page; others open as a dialogue


def _no_actions(_: Any) -> tuple[RowAction, ...]:
    return ()


@dataclass(frozen=True)
class Table(Generic[Row]):
    columns: tuple[Column[Row], ...]  # the first one names the row
    key: Callable[[Row], str]  # unique: the row keeps its place on the screen by it
    words: Callable[[Row], str]  # what the search looks at
    empty: str  # what to do next when there are no rows at all
    choices: tuple[Choice[Row], ...] = ()
    actions: Callable[[Row], tuple[RowAction, ...]] = _no_actions
    order: str = ""  # of the rows as long as the visitor chooses none: "name", "-created"
    empty_action: RowAction | None = None
    page_rows: int = ROWS_A_PAGE


@dataclass(frozen=True, slots=True)
class Head:
    label: str
    href: str  # sorts by it; empty: cannot
    sorted: str  # ascending, descending or empty
    is_number: bool


@dataclass(frozen=True, slots=True)
class Line:
    key: str
    cells: tuple[Cell, ...]
    actions: tuple[RowAction, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """A filter with its values, and how many rows have each."""

    key: str
    label: str
    chosen: str
    values: tuple[tuple[str, str, int], ...]  # value, as shown, rows


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as it is drawn."""

    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    rows: tuple[Any, ...]  # what the lines are made of, for pages that draw them in another way
    offered: tuple[Offered, ...]
    text: str  # searched for
    found: int
    all: int
    page: int
    pages: int
    previous: str
    next: str
    kept: tuple[tuple[str, str], ...]  # the rest of the address, for the search form
    empty: str
    empty_action: RowAction | None
    clear: str = field(default="?")

    @property
    def has_actions(self) -> bool:
        return any(line.actions for line in self.lines)

    @property
    def is_filtered(self) -> bool:
        return bool(self.text or any(each.chosen for each in self.offered))


def view(table: Table[Row], rows: Iterable[Row], query: Mapping[str, str]) -> TableView:
    everything = list(rows)
    text = query.get("q", "").strip()
    wanted = text.casefold().split()
    # Without a search nobody looks at the words of thousands of rows.
    found = [row for row in everything if _has(table.words(row), wanted)] if wanted else everything
    offered = tuple(_offered(choice, found, query) for choice in table.choices)
    for choice, each in zip(table.choices, offered, strict=True):
        if each.chosen:
            found = [row for row in found if choice.value(row) == each.chosen]
    order = _order(table, query)
    found = _sorted(table, found, order)
    pages = max(1, -(-len(found) // table.page_rows))
    page = max(1, min(_number(query.get("page", "")), pages))
    shown = found[(page - 1) * table.page_rows : page * table.page_rows]
    return TableView(
        heads=tuple(_head(column, order, query) for column in table.columns),
        lines=tuple(_line(table, row) for row in shown),
        rows=tuple(shown),
        offered=offered,
        text=text,
        found=len(found),
        all=len(everything),
        page=page,
        pages=pages,
        previous=_address(query, page=str(page - 1)) if page > 1 else "",
        next=_address(query, page=str(page + 1)) if page < pages else "",
        kept=tuple((k, query[k]) for k in ("sort", "namespace") if query.get(k)),
        empty=table.empty,
        empty_action=table.empty_action,
        clear=_address({k: v for k, v in query.items() if k in ("sort", "namespace")}),
    )


def _has(words: str, wanted: list[str]) -> bool:
    folded = words.casefold()
    return all(each in folded for each in wanted)


def _offered(choice: Choice[Row], rows: list[Row], query: Mapping[str, str]) -> Offered:
    chosen = query.get(choice.key, "")
    counts = Counter(choice.value(row) for row in rows)
    counts.pop("", None)
    if chosen and chosen not in counts:
        counts[chosen] = 0  # stays visible, so that it can be taken back
    listed = sorted(counts.items())[:_MOST_CHOICES]
    values = tuple((value, choice.word(value), count) for value, count in listed)
    return Offered(choice.key, choice.label, chosen, values)


def _order(table: Table[Row], query: Mapping[str, str]) -> str:
    asked = query.get("sort", "")
    known = {column.key for column in table.columns if column.sort is not None}
    return asked if asked.removeprefix("-") in known else table.order


def _sorted(table: Table[Row], rows: list[Row], order: str) -> list[Row]:
    rows = sorted(rows, key=table.key)  # equal ones keep an order that never changes
    for column in table.columns:
        if column.sort is not None and column.key == order.removeprefix("-"):
            return sorted(rows, key=column.sort, reverse=order.startswith("-"))
    return rows


def _head(column: Column[Row], order: str, query: Mapping[str, str]) -> Head:
    if column.sort is None:
        return Head(column.label, "", "", column.is_number)
    state = {column.key: "ascending", f"-{column.key}": "descending"}.get(order, "")
    wanted = f"-{column.key}" if state == "ascending" else column.key
    return Head(column.label, _address(query, sort=wanted, page=""), state, column.is_number)


def _line(table: Table[Row], row: Row) -> Line:
    cells = tuple(column.cell(row) for column in table.columns)
    return Line(table.key(row), cells, table.actions(row))


def _number(text: str) -> int:
    # int() refuses thousands of digits, hence the limit on the length.
    return int(text) if text.isdecimal() and len(text) < 10 else 1


def _address(query: Mapping[str, str], **changes: str) -> str:
    return "?" + urlencode({k: v for k, v in {**query, **changes}.items() if v})
