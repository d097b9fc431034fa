"""What a terminal showed, as an SVG that moves by CSS alone. Pure.

Whoever asks for less motion, and a viewer without CSS animations, sees the last frame.
"""

import html
import re
from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import NamedTuple

from tools.terminal_screen import Cell, Screen, Version

_LETTER, _LINE, _MARGIN, _BAR = 7.2, 16.0, 14.0, 30.0
_COLOURS = {
    "black": "#6e7681",
    "red": "#ff7b72",
    "green": "#7ee787",
    "yellow": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "white": "#f0f6fc",
}
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">
<title>{title}</title>
<style>
text {{ font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
  fill: #c9d1d9; white-space: pre }}
.bold {{ font-weight: bold; fill: #f0f6fc }}
.dim {{ opacity: .6 }}
{colours}
.past {{ visibility: hidden }}
@media (prefers-reduced-motion: no-preference) {{
.a {{ animation-duration: {seconds:.2f}s; animation-timing-function: step-end;
  animation-iteration-count: infinite }}
{motion}
}}
</style>
<clipPath id="window"><rect x="0" y="{top:g}" width="{width:g}" height="{inside:g}"/></clipPath>
<rect width="{width:g}" height="{height:g}" rx="8" fill="#0d1117"/>
<circle cx="18" cy="15" r="5" fill="#ff5f57"/><circle cx="35" cy="15" r="5" fill="#febc2e"/>
<circle cx="52" cy="15" r="5" fill="#28c840"/>
<g clip-path="url(#window)"><g id="page" class="a" transform="translate(0 {last:g})">
"""


class Typed(NamedTuple):
    """A command that appears letter by letter."""

    row: int
    begin: int  # its column
    length: int
    from_s: float
    to_s: float


def animation(screen: Screen, typed: list[Typed], title: str, rows: int, seconds: float) -> str:
    """`rows` are seen at a time; `seconds` is the length of the whole, which then begins anew."""
    motion = _Motion(seconds)
    body = [*_rows(screen, motion), *_covers(typed, screen.width, motion)]
    motion.scroll(screen, rows)
    inside = rows * _LINE + _MARGIN
    colours = "\n".join(f".{name} {{ fill: {value} }}" for name, value in _COLOURS.items())
    head = _HEAD.format(
        width=screen.width * _LETTER + 2 * _MARGIN,
        height=_BAR + inside,
        top=_BAR + 4,  # below the letters of the row above
        inside=inside,
        title=html.escape(title),
        colours=colours,
        seconds=seconds,
        motion="\n".join(motion.rules),
        last=-_scrolled(len(screen.rows), rows),
    )
    return "\n".join([head.rstrip(), *body, "</g></g>", "</svg>"]) + "\n"


class _Motion:
    """The keyframes. With `step-end`, a value holds until the next frame."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rules: list[str] = []
        self._names: dict[str, str] = {}

    def at(self, second: float) -> str:
        return f"{min(99.99, 100 * second / self.seconds):.2f}%"

    def shown(self, from_s: float, to_s: float | None) -> str:
        """The class of what is seen between these times."""
        frames = f"0%{{visibility:hidden}}{self.at(from_s)}{{visibility:visible}}"
        if to_s is not None:
            frames += f"{self.at(to_s)}{{visibility:hidden}}"
        return self.named(frames)

    def named(self, frames: str) -> str:
        if frames not in self._names:
            name = self._names[frames] = f"k{len(self._names)}"
            self.rules.append(f"@keyframes {name}{{{frames}}} .{name}{{animation-name:{name}}}")
        return self._names[frames]

    def scroll(self, screen: Screen, rows: int) -> None:
        first = sorted((v[0].at_s, n) for n, v in enumerate(screen.versions) if v)
        frames, top = "0%{transform:translate(0,0)}", 0.0
        for second, same in groupby(first, key=lambda each: each[0]):
            down = _scrolled(max(number for _, number in same) + 1, rows)
            if down > top:
                top = down
                frames += f"{self.at(second)}{{transform:translate(0,{-top:g}px)}}"
        self.rules.append(f"@keyframes page{{{frames}}} #page{{animation-name:page}}")


def _scrolled(rows: int, seen: int) -> float:
    return max(0, rows - seen) * _LINE


def _rows(screen: Screen, motion: _Motion) -> Iterator[str]:
    for number, versions in enumerate(screen.versions):
        for version, following in zip_longest(versions, versions[1:]):
            end = following.at_s if following else None
            spans = "".join(_spans(version))
            if spans:
                shown = motion.shown(version.at_s, end) if version.at_s > 0 else ""
                past = " past" if end is not None else ""
                y = _BAR + (number + 1) * _LINE
                yield f'<text class="a {shown}{past}" y="{y:g}">{spans}</text>'


def _spans(version: Version) -> Iterator[str]:
    """Each with its own place: fonts differ, and columns must not. Blanks need no letters."""
    column = 0
    for style, group in groupby(version.cells, key=_style):
        text = "".join(cell.letter for cell in group)
        for word in re.finditer(r"\S+(?: \S+)*", text):
            x = _MARGIN + (column + word.start()) * _LETTER
            shown = f' class="{style}"' if style else ""
            length = f' textLength="{len(word[0]) * _LETTER:g}"' if len(word[0]) > 1 else ""
            yield f'<tspan x="{x:g}"{length}{shown}>{html.escape(word[0], quote=False)}</tspan>'
        column += len(text)


def _style(cell: Cell) -> str:
    return "" if cell.letter == " " else " ".join(sorted(cell.style))


def _covers(typed: list[Typed], width: int, motion: _Motion) -> Iterator[str]:
    """A cover over the command moves to the right, letter by letter."""
    for each in typed:
        moved = each.length * _LETTER
        name = motion.named(
            f"0%{{visibility:visible}}{motion.at(each.from_s)}{{visibility:visible;"
            f"animation-timing-function:steps({each.length})}}"
            f"{motion.at(each.to_s)}{{visibility:hidden;transform:translate({moved:g}px,0)}}"
        )
        x, y = _MARGIN + each.begin * _LETTER, _BAR + each.row * _LINE + 4
        wide = (width - each.begin) * _LETTER
        yield (
            f'<rect class="a past {name}" x="{x:g}" y="{y:g}" width="{wide:g}" '
            f'height="{_LINE:g}" fill="#0d1117"/>'
        )
