"""Tables as text: what is shown, shortened, left out and coloured."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.cli.output.layout import Layout, wants_colours
from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import Column, Shorten, Table, Tone
from gpupool.cli.output.text import clean, shortened, width_of

ESCAPES = re.compile(r"\x1b\]8;;.*?\x1b\\|\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Pet:
    name: str
    age: int = 1
    chip: str = "GPU-0123456789abcdef"
    note: str = ""


COLUMNS: tuple[Column[Pet], ...] = (
    Column("NAME", lambda pet: pet.name, shorten=Shorten.MIDDLE, least=8),
    Column(
        "AGE",
        lambda pet: str(pet.age),
        right=True,
        tone=lambda pet: Tone.BAD if pet.age > 9 else Tone.GOOD,
    ),
    Column("CHIP", lambda pet: pet.chip, shorten=Shorten.PREFIX, least=6, rank=1),
    Column("NOTE", lambda pet: pet.note, optional=True, link=lambda pet: "https://a/"),
    Column("TWICE", lambda pet: str(2 * pet.age), wide=True),
)


def table(*pets: Pet) -> Table[Pet]:
    return Table("Pet", COLUMNS, pets, lambda pet: {"name": pet.name})


def lines(*pets: Pet, **layout: object) -> list[str]:
    return table(*pets).lines(Layout(**layout))  # type: ignore[arg-type]


LONG = Pet("a-very-long-name-of-a-pet", 12)


def test_a_pipe_gets_everything() -> None:
    assert lines(Pet("cat", 3), LONG) == [
        "NAME                        AGE   CHIP                   NOTE",
        "cat                           3   GPU-0123456789abcdef",
        "a-very-long-name-of-a-pet    12   GPU-0123456789abcdef",
    ]


def test_without_headers_columns_are_as_wide_as_their_cells() -> None:
    assert lines(Pet("cat", 3), headers=False) == ["cat   3   GPU-0123456789abcdef"]


def test_without_headers_an_empty_column_does_not_hide_those_behind_it() -> None:
    assert lines(Pet("cat", chip="", note="n"), headers=False) == ["cat   1      n"]


def test_wide_shows_all_columns() -> None:
    assert lines(Pet("cat", 3), wide=True)[0].split() == ["NAME", "AGE", "CHIP", "NOTE", "TWICE"]


def test_a_terminal_with_room_shortens_nothing_and_leaves_out_what_is_empty() -> None:
    assert lines(LONG, width=60) == [
        "NAME                        AGE   CHIP",
        "a-very-long-name-of-a-pet    12   GPU-0123456789abcdef",
    ]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (52, "a-very-long-name-of-a-pet   12  GPU-0123456789abcdef"),
        (46, "a-very-long-name-of-a-pet   12  GPU-012345678…"),
        (38, "a-very-long-name-of-a-pet   12  GPU-0…"),
        (37, "a-very-long-name-of-a-pet    12"),
        (30, "a-very-long-name-of-a-pet   12"),
        (20, "a-very-…f-a-pet   12"),
        (13, "a-ve…pet   12"),
    ],
)
def test_a_narrow_terminal_gives_up_what_matters_least_first(width: int, line: str) -> None:
    assert lines(LONG, width=width)[1] == line
    assert len(line) <= width


CHIPS = (Pet("cat", chip="GPU-01234567-aaaa"), Pet("dog", chip="GPU-01239999-bbbb"))


def test_of_identifiers_so_much_stays_that_tells_them_apart() -> None:
    assert [line.split()[-1] for line in lines(*CHIPS, width=21)[1:]] == [
        "GPU-01234…",
        "GPU-01239…",
    ]
    assert [line.split() for line in lines(*CHIPS, width=20)[1:]] == [["cat", "1"], ["dog", "1"]]


HINT = "Shortened to fit; -o wide shows all."


@pytest.mark.parametrize("width", [36, 38, 52])
def test_who_sees_less_on_a_terminal_is_told_how_to_see_all(width: int) -> None:
    assert (lines(LONG, width=width, hint=HINT)[-1] == HINT) == (width < 52)
    assert lines(LONG, width=width)[-1] != HINT


def test_the_hint_is_faint_cut_to_the_terminal_and_never_in_a_pipe() -> None:
    assert lines(LONG, width=30, hint=HINT, colours=True)[-1] == f"\x1b[2m{HINT[:29]}…\x1b[0m"
    assert HINT not in lines(LONG, hint=HINT)
    assert HINT not in lines(LONG, width=30, hint=HINT, headers=False)


def test_an_empty_column_that_is_left_out_needs_no_hint() -> None:
    assert lines(Pet("cat"), width=60, hint=HINT)[-1].startswith("cat")


@given(
    st.lists(st.builds(Pet, st.text(), st.integers(0, 10**9), st.text(), st.text()), max_size=4),
    st.integers(1, 100),
    st.booleans(),
)
def test_no_line_is_wider_than_the_terminal(pets: list[Pet], width: int, wide: bool) -> None:
    for line in lines(*pets, width=width, wide=wide, colours=True, links=True, hint=HINT):
        assert width_of(ESCAPES.sub("", line)) <= width


@given(st.text(), st.integers(1, 30), st.sampled_from([Shorten.MIDDLE, Shorten.END]))
def test_a_shortened_text_fits_and_keeps_its_beginning(
    text: str, width: int, where: Shorten
) -> None:
    found = shortened(text, width, where)
    assert width_of(found) <= width or found == text
    assert found == text or "…" in found
    assert text.startswith(found.partition("…")[0])


def test_the_ends_of_names_stay_because_they_tell_them_apart() -> None:
    assert shortened("web-7d4b9c6f5-x2x9z", 11, Shorten.MIDDLE) == "web-7…x2x9z"


def test_wide_characters_take_two_places() -> None:
    assert width_of("显卡") == 4
    assert shortened("显卡显卡", 5, Shorten.END) == "显卡…"


def test_cells_cannot_send_control_sequences_to_the_terminal() -> None:
    assert clean("a\x1b[2Jb\nc\x07\x9b") == "a\N{REPLACEMENT CHARACTER}[2Jb c" + 2 * (
        "\N{REPLACEMENT CHARACTER}"
    )
    assert "\x1b" not in "".join(lines(Pet("\x1b]0;title\x07")))


def test_colours_and_links_are_for_those_who_want_them() -> None:
    pets = (Pet("cat", 3, note="home"), Pet("dog", 10))
    plain = lines(*pets, width=80)
    assert not any("\x1b" in line for line in plain)
    coloured = lines(*pets, width=80, colours=True, links=True)
    assert [ESCAPES.sub("", line) for line in coloured] == plain
    assert coloured[0].startswith("\x1b[1mNAME")
    assert "\x1b[32m3\x1b[0m" in coloured[1]
    assert "\x1b]8;;https://a/\x1b\\home\x1b]8;;\x1b\\" in coloured[1]
    assert "\x1b[31m10\x1b[0m" in coloured[2]


@pytest.mark.parametrize(
    ("environment", "is_terminal", "wanted"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_who_wants_colours(environment: dict[str, str], is_terminal: bool, wanted: bool) -> None:
    assert wants_colours(environment, is_terminal=is_terminal) is wanted


def test_prose_of_blanks_stays_a_line() -> None:
    lines = Prose("Text", [Line(" " * 30), Line("")]).lines(Layout(width=20))
    assert lines == ["", ""]
