"""Layout: what the reader of the output can show. A terminal has a width; a pipe has none."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    width: int | None = None  # lines have to fit into it; None: nothing is shortened
    height: int | None = None
    colours: bool = False
    links: bool = False
    wide: bool = False  # all columns
    live: bool = False  # redrawn in place: no line may be longer than the terminal is wide
    headers: bool = True
    ellipsis: str = "…"  # for what was cut out
    hint: str = ""  # said below a table of which the width shows less than all


def layout_of_output(
    *,
    wide: bool = False,
    headers: bool = True,
    live: bool = False,
    indent: int = 0,
    hint: str = "",
) -> Layout:
    """Of standard output, as it is now: a terminal may change its size at any time. `indent`:
    blanks that the caller puts before each line."""
    is_terminal = sys.stdout.isatty()
    size = shutil.get_terminal_size() if is_terminal else None
    colours = wants_colours(os.environ, is_terminal=is_terminal)
    return Layout(
        # Who wants all columns wants all of them: a long line goes on below, or into `less -S`.
        width=size.columns - indent if size and (live or not wide) else None,
        height=size.lines if size else None,
        colours=colours,
        links=colours and is_terminal,
        wide=wide,
        live=live and is_terminal,
        headers=headers,
        hint=hint,
        ellipsis=_ellipsis(getattr(sys.stdout, "encoding", "") or "ascii"),
    )


def wants_colours(environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """By the conventions that other programs share: no-color.org, bixense.com/clicolors."""
    if environment.get("NO_COLOR"):
        return False
    forced = (environment.get(name, "") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    if any(value not in ("", "0") for value in forced):
        return True
    return is_terminal and environment.get("TERM") not in ("", "dumb", None)


def _ellipsis(encoding: str) -> str:
    try:
        "…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "~"
    return "…"
