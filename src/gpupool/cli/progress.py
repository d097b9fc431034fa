"""Progress of what may take long, on stderr: a live line in a terminal, else a plain line at times.

    with progress("Stopping the cluster") as shown:
        shown.say("waiting for its pods")

A thread shows it, so the work may block. What is done soon shows nothing.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    import rich.progress

LIVE_AFTER_S, LIVE_EVERY_S = 0.5, 0.1
PLAIN_AFTER_S, PLAIN_EVERY_S = 3.0, 5.0
_BAR_WIDTH = 24


class Progress:
    """How far the work is: the work writes it, a display reads it."""

    def __init__(self, title: str, total: int | None = None) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.words = ""

    def say(self, words: str) -> None:
        self.words = words

    def advance(self, by: int = 1) -> None:
        self.done += by

    def line(self, elapsed_s: float) -> str:
        counted = f"{self.done} of {self.total}" if self.total else ""
        told = ", ".join(filter(None, (counted, self.words)))
        return f"{self.title}{': ' if told else ''}{told} ({elapsed_s:.0f} s)"


class _Display(Protocol):
    after_s: float
    every_s: float

    def show(self, state: Progress, elapsed_s: float) -> None: ...

    def end(self) -> None: ...


@contextmanager
def progress(title: str, total: int | None = None, *, at_once: bool = False) -> Iterator[Progress]:
    """`at_once`: for what always takes long, a plain line says that it has begun."""
    state = Progress(title, total)
    display: _Display = _Live() if _is_terminal() else _Lines(at_once=at_once, title=title)
    ended = threading.Event()
    began_s = time.monotonic()

    def follow() -> None:
        pause_s = display.after_s
        with suppress(OSError):  # nobody reads it any more
            while not ended.wait(pause_s):
                display.show(state, time.monotonic() - began_s)
                pause_s = display.every_s

    follower = threading.Thread(target=follow, name="progress", daemon=True)
    follower.start()
    try:
        yield state
    finally:
        ended.set()
        follower.join()
        display.end()


def _is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class _Lines:
    def __init__(self, *, at_once: bool, title: str) -> None:
        self.after_s = PLAIN_EVERY_S if at_once else PLAIN_AFTER_S
        self.every_s = PLAIN_EVERY_S
        if at_once:
            click.echo(f"{title} ...", err=True)

    def show(self, state: Progress, elapsed_s: float) -> None:
        click.echo(f"{state.line(elapsed_s)} ...", err=True)

    def end(self) -> None:
        """A line stays as it is."""


class _Live:
    """One line that is written again and again, and vanishes at the end."""

    def __init__(self) -> None:
        self.after_s, self.every_s = LIVE_AFTER_S, LIVE_EVERY_S
        self._bar: rich.progress.Progress | None = None

    def show(self, state: Progress, elapsed_s: float) -> None:
        if self._bar is None:
            self._bar = _started_bar(has_total=bool(state.total))
            self._bar.add_task("")
        self._bar.update(
            self._bar.task_ids[0],
            description=state.line(elapsed_s),
            total=state.total,
            completed=state.done,
        )
        self._bar.refresh()

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _started_bar(*, has_total: bool) -> "rich.progress.Progress":
    from rich.console import Console  # slow to load, and most commands are done before
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True)
    spinner = "dots" if console.encoding.startswith("utf") else "line"
    mark: ProgressColumn = BarColumn(_BAR_WIDTH) if has_total else SpinnerColumn(spinner)
    one_line = Column(no_wrap=True, overflow="ellipsis")
    words = TextColumn("{task.description}", markup=False, table_column=one_line)
    bar = Bar(
        mark,
        words,
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.start()
    return bar
