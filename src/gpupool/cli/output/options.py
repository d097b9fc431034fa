"""The options -o, --no-headers and --watch, and `Output`: what was chosen by them."""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.output.layout import layout_of_output

if TYPE_CHECKING:
    from gpupool.cli.output.pages import Page

Command = Callable[..., Any]
TABLE, WIDE, JSON, YAML, NAME = "table", "wide", "json", "yaml", "name"
_DOCUMENTS = (JSON, YAML)
_HINT = "Shortened to fit; -o wide shows all."


@dataclass(frozen=True, slots=True)
class Output:
    format: str = TABLE
    headers: bool = True
    watch: bool = False
    has_wide: bool = False  # whether there is -o wide

    @property
    def is_document(self) -> bool:
        """Programs read it: nothing but the document may be printed, not even for no rows."""
        return self.format in _DOCUMENTS

    def show(self, page: "Page") -> None:
        if missing := self.missing(page):
            click.echo(missing, err=True)
        elif lines := self.lines(page):
            echo("\n".join(lines))

    def missing(self, page: "Page") -> str:
        """What people read, on standard error, in place of a table without rows."""
        return "" if self.is_document else page.missing()

    def lines(self, page: "Page") -> list[str]:
        from gpupool.cli.output.documents import json_text, yaml_text

        if self.format == JSON:
            return [json_text(page.document(), one_line=self.watch)]
        if self.format == YAML:
            return [*(["---"] if self.watch else []), yaml_text(page.document())]
        if self.format == NAME:
            return page.names()
        layout = layout_of_output(
            wide=self.format == WIDE,
            headers=self.headers,
            live=self.watch,
            hint=_HINT if self.has_wide and self.format != WIDE else "",
        )
        return page.lines(layout)


def echo(text: str, *, end: str = "\n") -> None:
    """To standard output. Colours were decided on before; click must not take them out."""
    encoding = getattr(sys.stdout, "encoding", "") or "utf-8"
    shown = text.encode(encoding, "replace").decode(encoding)
    click.echo(shown + end, nl=False, color=True)


def output_options(
    *formats: str, headers: bool = True, watch: bool = False
) -> Callable[[Command], Command]:
    """Passes `output` to the command. `formats`: those beside the text for people."""

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def with_output(
            *arguments: Any,
            output_format: str,
            no_headers: bool = False,
            watch: bool = False,
            wide: bool = False,
            **given: Any,
        ) -> Any:
            chosen = WIDE if wide and output_format == TABLE else output_format
            output = Output(chosen, not no_headers, watch, WIDE in formats)
            return function(*arguments, output=output, **given)

        decorated: Command = with_output
        if watch:
            decorated = click.option(
                "-w", "--watch", is_flag=True, help="Show every change, until Ctrl-C."
            )(decorated)
        if WIDE in formats:  # what people type who know -o wide by heart; not worth a line of help
            decorated = click.option("--wide", is_flag=True, hidden=True)(decorated)
        if headers:
            decorated = click.option(
                "--no-headers", is_flag=True, help="Leave out the line of titles."
            )(decorated)
        return click.option(
            "-o",
            "--output",
            "output_format",
            type=click.Choice([TABLE, *formats]),
            default=TABLE,
            metavar="FORMAT",
            help=f"How to print it: {_listed(formats)}.",
        )(decorated)

    return decorate


def _listed(formats: tuple[str, ...]) -> str:
    return f"{', '.join((TABLE, *formats[:-1]))} or {formats[-1]}"
