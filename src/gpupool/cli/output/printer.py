"""Printer: prints one page after another. On a terminal each takes the place of the one before."""

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

import click

from gpupool.cli.output.options import Output, echo

if TYPE_CHECKING:
    from gpupool.cli.output.pages import Page

_UP, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[{}A\r", "\x1b[K", "\x1b[J"
_WHOLE_SCREEN = "\x1b[H\x1b[2J"


def _broken(message: str) -> list[str]:
    """Into lines of the terminal: whoever redraws has to know how many there are."""
    return textwrap.wrap(message, shutil.get_terminal_size().columns) or [""]


class Printer:
    def __init__(self, output: Output) -> None:
        self._output = output
        is_terminal = sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        self._in_place = is_terminal and not output.is_document
        self._shown: list[str] | None = None
        self._size = os.terminal_size((0, 0))
        self._said = ""

    def show(self, page: "Page") -> None:
        """Pages that look like the one before are not printed again."""
        missing = self._output.missing(page)
        lines = [] if missing else self._output.lines(page)
        if self._in_place:
            self._redraw(lines or _broken(missing))
        elif lines != self._shown:
            self._append(lines, missing)
        self._said = ""

    def say(self, message: str) -> None:
        """Something beside the pages, such as a server that does not answer. Once."""
        if message != self._said:
            click.echo(message, err=True)
            self._said = message
            if self._in_place:
                self._shown = None  # the next page goes below

    def _append(self, lines: list[str], missing: str) -> None:
        is_text = not self._output.is_document
        if lines:
            # A blank line before each table but the first, so that they can be told apart.
            echo("\n".join(["", *lines] if is_text and self._shown is not None else lines))
        elif missing:
            click.echo(missing, err=True)
        sys.stdout.flush()
        self._shown = lines

    def _redraw(self, lines: list[str]) -> None:
        size = shutil.get_terminal_size()
        most = max(size.lines - 1, 1)  # the cursor is in the line below
        if len(lines) > most:
            lines = [*lines[: most - 1], f"and {len(lines) - most + 1} more lines"[: size.columns]]
        if (lines, size) == (self._shown, self._size):
            return
        start = ""
        if self._shown and size == self._size:
            start = _UP.format(len(self._shown))
        elif self._shown:
            start = _WHOLE_SCREEN  # the terminal has broken our lines anew: nobody knows where
        # Cleared before it is written: behind a line as wide as the terminal, the cursor still
        # stands on the last character.
        body = "".join(f"{_REST_OF_LINE}{line}\n" for line in lines)
        echo(f"{start}{body}{_REST_OF_SCREEN}", end="")
        sys.stdout.flush()
        self._shown, self._size = lines, size
