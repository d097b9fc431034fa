"""What `--help` says: every command shows examples that can be typed, and fits a terminal."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.local.home import Home
from tests.cli.commands import every_command, examples_of

ROOT = Path(__file__).parent.parent.parent
COMMANDS = dict(every_command())
EXAMPLES = [(path, line) for path, command in COMMANDS.items() for line in examples_of(command)]
# The files that examples read.
FILES = ("training.yaml", "cluster.json", "pods.csv", "nodes.csv", "tls.crt", "tls.key", "ca.crt")


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_shows_one_to_four_examples(path: str) -> None:
    assert 1 <= len(examples_of(COMMANDS[path])) <= 4


def called(example: str) -> list[list[str]]:
    """The commands of gpupool in a line of a shell, as lists of words."""
    inner = re.findall(r"[$<]\((.*?)\)", example)
    lines: list[list[str]] = [[]]
    for word in shlex.split(" | ".join([re.sub(r"[$<]\(.*?\)", "", example), *inner])):
        if word in ("|", ">"):
            lines.append([])
        else:
            lines[-1].append(word)
    return [line[1:] for line in lines if line and line[0] == "gpupool"]


def parse(arguments: list[str]) -> str:
    """Parses as click does before it runs a command. Returns the path of the command."""
    context = gpupool.make_context("gpupool", arguments)
    while isinstance(group := context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:
            break
        name, command, rest = group.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context.command_path


@pytest.mark.parametrize(("path", "example"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_can_be_typed(
    path: str, example: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in FILES:
        (tmp_path / name).touch()
    paths = [parse(arguments) for arguments in called(example)]
    assert any(each.startswith(path) for each in paths)


def test_an_example_with_a_wrong_option_would_be_seen(home: Home) -> None:
    with pytest.raises(click.UsageError):
        parse(["gpu", "list", "--nodes", "a"])
    with pytest.raises(click.UsageError):
        parse(["gpu", "cordon", "only-a-node"])


@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_80_columns(path: str) -> None:
    shown = CliRunner().invoke(gpupool, [*path.split()[1:], "--help"], terminal_width=80)
    assert shown.exit_code == 0
    assert not [line for line in shown.output.splitlines() if len(line) > 80]


@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_no_words_of_click_and_nothing_cut_off(path: str) -> None:
    """Types such as INTEGER RANGE say nothing; a list of commands must not end in dots."""
    shown = CliRunner().invoke(gpupool, [*path.split()[1:], "--help"], terminal_width=80).output
    assert " RANGE" not in shown
    _usage, _, rest = shown.partition("\n")
    assert not [line for line in rest.splitlines() if line.endswith("...")]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_and_command_says_what_it_does(path: str) -> None:
    command = COMMANDS[path]
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert not [each.name for each in options if not each.hidden and not each.help]


@pytest.mark.parametrize("path", ["scheduler", "extender", "explain", "replay"])
def test_help_names_the_policies_and_the_default(path: str) -> None:
    said = " ".join(CliRunner().invoke(gpupool, [*path.split(), "--help"]).output.split())
    known = re.search(r"Packing policy: ([^.;]+)[.;]", said)
    assert known
    assert re.split(r", | or ", known[1]) == list(POLICIES)
    assert f"[default: {DEFAULT}]" in said
