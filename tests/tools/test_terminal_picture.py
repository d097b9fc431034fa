"""The recording in the README: what a terminal shows, and how the picture moves."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tools.terminal_animation import Typed, animation
from tools.terminal_screen import Screen, Version

PICTURE = Path(__file__).parent.parent.parent / "docs" / "terminal.svg"


def shown(version: Version) -> str:
    return "".join(cell.letter for cell in version.cells)


def written(*texts: str, width: int = 20) -> Screen:
    """A screen on which a text is written each second."""
    screen = Screen(width)
    for second, text in enumerate(texts):
        screen.write(text, float(second))
    return screen


def test_a_line_that_is_written_anew_has_two_versions() -> None:
    (row,) = written("1 of 2", "\r\x1b[K2 of 2").versions
    assert [(version.at_s, shown(version)) for version in row] == [(0.0, "1 of 2"), (1.0, "2 of 2")]


def test_a_progress_bar_goes_up_and_writes_over_its_rows() -> None:
    screen = written("a\r\nb\r\n", "\x1b[2A\x1b[2Kc")
    assert ["".join(cell.letter for cell in row) for row in screen.rows] == ["c", "b", ""]


def test_a_long_line_goes_on_in_the_next_row() -> None:
    screen = written("abcdef", width=4)
    assert [shown(row[-1]) for row in screen.versions] == ["abcd", "ef"]


def test_colours_are_kept_and_what_only_terminals_understand_is_not() -> None:
    (row,) = written("\x1b]0;title\x07\x1b[?25l\x1b[1;32mok\x1b[0m").versions
    assert [(cell.letter, cell.style) for cell in row[0].cells] == [
        ("o", frozenset({"bold", "green"})),
        ("k", frozenset({"bold", "green"})),
    ]


def test_the_last_frame_needs_no_animation() -> None:
    screen = written("one\r\n\r\n", "two\r\n", "three")
    made = animation(screen, [Typed(0, 0, 3, 0.0, 0.5)], "a < b", rows=2, seconds=4)
    tree = ElementTree.fromstring(made)
    assert tree.findtext("{*}title") == "a < b"
    still, moving = made.split("@media (prefers-reduced-motion: no-preference)")
    assert "animation" not in still
    assert "translate(0,-32px)" in moving
    assert 'id="page" class="a" transform="translate(0 -32)"' in made


def test_the_picture_of_the_readme_can_be_shown_by_any_site() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    tree = ElementTree.fromstring(text)
    assert not [each.tag for each in tree.iter() if "script" in each.tag or "image" in each.tag]
    assert "prefers-reduced-motion" in text
    assert len(text) < 300_000
    assert not re.findall(r"https?://(?!www\.w3\.org|127\.|localhost)\S+", text)
    assert "/tmp/" not in text
