"""The live screen of `gpupool top`, with Textual. Only the lines that are seen are made.

Keys that change something run the ordinary command in the terminal, and come back.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, Static

from gpupool.cli.output.layout import Layout
from gpupool.cli.output.table import Tone
from gpupool.cli.output.text import clean, shortened, table_lines, width_of
from gpupool.cli.top_rows import (
    CARDS,
    COLUMNS,
    PODS,
    SORTS,
    VIEWS,
    Now,
    Row,
    busy,
    chosen,
    rows_of,
    spark,
    table_of,
    tone_of,
)
from gpupool.history.database import NoHistory
from gpupool.history.series import Kind

if TYPE_CHECKING:
    from gpupool.cli.top_feed import Feed
    from gpupool.history.pages import History

_EVERY_S = 1.0
_HISTORY_S = 3600
_STYLES = {Tone.CAUTION: Style(color="yellow"), Tone.FAINT: Style(dim=True)}


class Choice(NamedTuple):
    """What is shown first."""

    view: str
    sort: str = "util"
    text: str = ""  # only lines that contain these words


class Lines(ScrollView, can_focus=True):
    """The rows; makes a line when it is drawn."""

    # Of this widget, and not of the app: a scroll view has bindings of its own for them.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "app.move(-1)", show=False),
        Binding("down,j", "app.move(1)", show=False),
        Binding("pageup", "app.move(-20)", show=False),
        Binding("pagedown", "app.move(20)", show=False),
        Binding("home", "app.move(-1000000)", show=False),
        Binding("end", "app.move(1000000)", show=False),
    ]
    selected = reactive(0)

    def __init__(self) -> None:
        super().__init__()
        self.view = PODS
        self.rows: list[Row] = []
        self._made: tuple[int, int, int] | None = None  # for which place and size; None: anew
        self._kept: list[str] = []

    def show(self, view: str, rows: list[Row]) -> None:
        was = self.row
        self.view, self.rows, self._made = view, rows, None
        if was is not None:  # the same thing stays selected when it moves
            places = (at for at, row in enumerate(rows) if row.key == was.key)
            self.selected = next(places, min(self.selected, max(0, len(rows) - 1)))
        self.virtual_size = Size(self.size.width, len(rows) + 1)
        self.refresh()

    @property
    def row(self) -> Row | None:
        return self.rows[self.selected] if self.selected < len(self.rows) else None

    def move(self, by: int) -> None:
        self.selected = max(0, min(len(self.rows) - 1, self.selected + by))
        height = max(1, self.size.height - 2)
        top = int(self.scroll_offset.y)
        if not top <= self.selected < top + height:
            goal = self.selected if self.selected < top else self.selected - height + 1
            self.scroll_to(y=goal, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return Strip([Segment(self._texts()[0].ljust(width), Style(bold=True))], width)
        at = int(self.scroll_offset.y) + y - 1
        if at >= len(self.rows):
            return Strip.blank(width)
        lines = self._texts()
        text = lines[y] if y < len(lines) else ""
        style = Style(reverse=True) if at == self.selected else Style()
        style += _STYLES.get(tone_of(self.rows[at]), Style())
        shown = shortened(clean(text), width, COLUMNS[self.view][0].shorten)
        return Strip([Segment(shown + " " * (width - width_of(shown)), style)], width)

    def _texts(self) -> list[str]:
        """The title and the rows on the screen. Kept until something changes."""
        top, height = int(self.scroll_offset.y), self.size.height
        key = (top, self.size.width, height)
        if self._made != key:
            shown = self.rows[top : top + height]
            layout = Layout(self.size.width, live=True)
            self._kept = table_lines(table_of(self.view, shown), layout)
            self._made = key
        return self._kept


class TopScreen(App[None]):
    CSS = """
    #head, #detail { height: auto; padding: 0 1; }
    #head { background: $panel; } #detail { background: $panel; min-height: 2; }
    #filter { display: none; height: 3; } #filter.open { display: block; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "view('nodes')", "Nodes"),
        Binding("2", "view('cards')", "Cards"),
        Binding("3", "view('pods')", "Pods"),
        Binding("s", "sort", "Sort"),
        Binding("r", "backwards", "Flip"),
        Binding("slash", "filter", "Filter"),
        Binding("c", "cordon", "Cordon"),
        Binding("z", "resize", "Resize"),
        Binding("e", "explain", "Explain"),
        Binding("q", "quit", "Quit"),
        Binding("escape", "clear", show=False),
    ]

    def __init__(
        self, feed: "Feed", history: "History", chosen: Choice, options: Sequence[str] = ()
    ) -> None:
        """`options`: those that lead other commands to this cluster."""
        super().__init__()
        self._feed, self._history, self._options = feed, history, options
        self._view, self._sort, self._text = chosen
        self._backwards = False
        self._now = Now()
        self._rows: tuple[Now, str, list[Row]] = (self._now, self._view, [])
        self._past: tuple[str, str] = ("", "")

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield Input(self._text, placeholder="words that names contain; Enter", id="filter")
        yield Lines()
        yield Static(id="detail", markup=False)
        yield Footer(compact=True)

    async def on_mount(self) -> None:
        self.set_interval(_EVERY_S, self.update)
        self.set_interval(5.0, self.look_back)
        self.query_one(Lines).focus()
        self.update()
        await self.look_back()

    def update(self) -> None:
        self._now = self._feed.now()
        self.draw()

    def draw(self) -> None:
        rows = chosen(self._all_rows(), self._sort, self._text, backwards=self._backwards)
        self.query_one(Lines).show(self._view, rows)
        self.query_one("#head", Static).update(self._head(len(rows)))
        self.query_one("#detail", Static).update(self._detail())

    def _all_rows(self) -> list[Row]:
        """Made once for what is known now: a key that is pressed needs no new ones."""
        now, view, rows = self._rows
        if now is not self._now or view != self._view:
            rows = rows_of(self._now, self._view)
            self._rows = (self._now, self._view, rows)
        return rows

    def _head(self, count: int) -> str:
        cards = sum(len(node.cards) for node in self._now.nodes.values())
        given = sum(s.units / max(s.card_units, 1) for h in self._now.held for s in h.shares)
        known = [c.sm_percent for c in self._now.readings.values() if c.sm_percent is not None]
        used = f"{sum(known) / len(known):.0f}% used" if known else "use unknown"
        order = f"{self._sort}{', reversed' if self._backwards else ''}"
        told = f"  |  {self._feed.unread} nodes unknown" if self._feed.unread else ""
        words = f"  |  filter: {self._text}" if self._text else ""
        return (
            f"{len(self._now.nodes)} nodes, {cards} cards, {given:.1f} given, {used}  |  "
            f"{count} {self._view} by {order}{words}{told}"
        )

    def _detail(self) -> str:
        row = self.query_one(Lines).row
        if row is None:
            return self._feed.problem
        name = f"{row.namespace}/{row.name}" if row.namespace else row.name
        key, line = self._past
        return f"{name}  {row.what}\nlast hour  {line if key == row.key else ''}"

    async def look_back(self) -> None:
        row = self.query_one(Lines).row
        if row is None:
            return
        kind = {"nodes": Kind.NODE, "cards": Kind.CARD, "pods": Kind.CONTAINER}[self._view]
        try:
            points = await self._history.points(kind, row.key, time.time() - _HISTORY_S)
        except NoHistory as error:
            self._past = (row.key, f"unknown: {error}")
        else:
            self._past = (row.key, spark([p and busy(p, row.cards) for p in points.values]))
        self.query_one("#detail", Static).update(self._detail())

    async def action_view(self, view: str) -> None:
        self._view = view if view in VIEWS else self._view
        self.query_one(Lines).selected = 0
        self.draw()
        await self.look_back()

    def action_sort(self) -> None:
        names = list(SORTS)
        self._sort = names[(names.index(self._sort) + 1) % len(names)]
        self.draw()

    def action_backwards(self) -> None:
        self._backwards = not self._backwards
        self.draw()

    async def action_move(self, by: int) -> None:
        self.query_one(Lines).move(by)
        self.query_one("#detail", Static).update(self._detail())
        await self.look_back()

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("open")
        field.focus()

    def action_clear(self) -> None:
        self._text = ""
        self.query_one("#filter", Input).value = ""
        self._close_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._text = event.value
        self.draw()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("open")
        self.query_one(Lines).focus()
        self.draw()

    def action_cordon(self) -> None:
        row = self.query_one(Lines).row
        if row is None or self._view != CARDS:
            self.notify("Choose a card (2) first.")
            return
        verb = "uncordon" if row.state == "cordoned" else "cordon"
        self._run(["gpu", verb, row.node, str(row.card)])

    def action_explain(self) -> None:
        self._of_pod(lambda row: ["explain", row.name, "-n", row.namespace])

    def action_resize(self) -> None:
        self._of_pod(
            lambda row: ["resize", row.name, "-n", row.namespace, "-c", row.key.split("/")[2]],
            "--gpu-mem",
        )

    def _of_pod(self, command: Callable[[Row], list[str]], asks: str = "") -> None:
        row = self.query_one(Lines).row
        if row is None or self._view != PODS:
            self.notify("Choose a pod (3) first.")
            return
        self._run(command(row), asks)

    def _run(self, words: list[str], asks: str = "") -> None:
        """In the terminal, as if it was typed. `asks`: an option whose value is asked for."""
        # Ctrl-C and Ctrl-D there mean: back to the screen.
        with self.suspend(), contextlib.suppress(EOFError, KeyboardInterrupt):
            print(f"\n$ gpupool {' '.join(words)}")
            if asks:
                value = input(f"{asks} (empty: do nothing): ").strip()
                words = [*words, asks, value] if value else []
            elif input("Enter runs it, n and Enter do not: ").strip():
                words = []
            if words:
                command = [sys.executable, "-m", "gpupool", *words, *self._options]
                subprocess.run(command, check=False)
            input("Enter goes back. ")
