"""The tables in a real terminal of 80 and of 200 columns, and in a pipe."""

import os
import re
import subprocess

import pytest

from gpupool.core.gpu import CardHealth
from tests.cli.output.terminals import COMMAND, terminal
from tests.cli.output.world import HOLDER, NODES_OF_WORLD, UUID, World

LISTS = [
    ("gpu", "list"),
    ("gpu", "list", NODES_OF_WORLD[1]),
    ("gpu", "pods"),
    ("gpu", "pods", "-n", "default"),
]
OF_THIS_MACHINE = [("clusters",), ("quota",), ("example",)]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("command", [*LISTS, *OF_THIS_MACHINE], ids=" ".join)
def test_no_line_of_a_table_is_wider_than_the_terminal(
    world: World, command: tuple[str, ...], columns: int
) -> None:
    world.set_health(CardHealth.LOST, "XID 79: the card has fallen off the bus")
    where = world.where if command in LISTS else ()
    with terminal(*command, *where, columns=columns) as shown:
        assert shown.rest() == 0
        assert max(map(len, shown.screen)) <= columns


def test_what_is_missing_is_said_below_the_table(world: World) -> None:
    """Above it, the line of progress would be in the way on a slow machine."""
    with terminal("gpu", "list", *world.where, columns=80) as shown:
        shown.rest()
        [titles] = [at for at, line in enumerate(shown.screen) if line.startswith("NODE")]
        [note] = [at for at, line in enumerate(shown.screen) if "No readings of" in line]
        assert titles < note


@pytest.mark.parametrize("command", [("gpu", "list"), ("gpu", "pods")], ids=" ".join)
def test_a_table_that_does_not_fit_says_how_to_see_all_of_it(
    world: World, command: tuple[str, ...]
) -> None:
    hint = "Shortened to fit; -o wide shows all."
    for columns, is_said in ((80, True), (250, False)):
        with terminal(*command, *world.where, columns=columns) as shown:
            shown.rest()
            assert (hint in shown.screen) == is_said
    done = subprocess.run(
        [*COMMAND, *command, *world.where], capture_output=True, check=True, text=True
    )
    assert hint not in done.stdout


def test_a_wide_terminal_shows_all_names(world: World) -> None:
    with terminal("gpu", "pods", *world.where, columns=200) as shown:
        shown.rest()
        assert HOLDER in shown.screen[1]
        assert "…" not in shown.raw


def test_80_columns_show_which_card_is_broken_and_who_holds_one(world: World) -> None:
    world.set_health(CardHealth.LOST, "XID 79")
    with terminal("gpu", "list", *world.where, columns=80) as shown:
        shown.rest()
        [line] = [line for line in shown.screen if "lost" in line]
        assert line.split()[-2:] == ["XID", "79"]
        assert "\x1b[31mlost\x1b[0m" in shown.raw
    with terminal("gpu", "pods", *world.where, columns=80) as shown:
        shown.rest()
        assert shown.screen[1].split()[0].endswith("5-x2x9z")


@pytest.mark.parametrize("setting", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none_and_no_links(
    world: World, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, str]
) -> None:
    monkeypatch.setenv(*setting)
    with terminal("gpu", "list", *world.where, columns=80) as shown:
        assert shown.rest() == 0
        # Not "no escape at all": on a slow machine a line of progress comes and goes.
        assert not re.search(r"\x1b\[[\d;]*(?:3|4|9|10)\d\b|\x1b\]8", shown.raw)
        assert "NODE" in shown.raw


def test_a_pipe_gets_whole_names_without_colours(world: World) -> None:
    world.set_health(CardHealth.HEALTHY)
    done = subprocess.run(
        [*COMMAND, "gpu", "list", *world.where],
        env={**os.environ, "COLUMNS": "40", "TERM": "xterm"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert "\x1b" not in done.stdout
    first, *_, last = done.stdout.splitlines()
    assert first.split()[0] == "NODE"
    assert "UUID" in first.split()
    assert last.split()[:4] == [NODES_OF_WORLD[1], "1", "Tesla", "V100-SXM2-16GB"]
    assert {"16130MiB", "healthy", UUID.format(1, 1)} <= {*last.split()}
