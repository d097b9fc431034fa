"""What the chart says to programs is what they understand, with all values that add something."""

import itertools
from collections.abc import Iterator

import click
import pytest
import yaml

from gpupool.cli.main import gpupool
from kubeclient.objects import Obj
from tests.deploy.test_chart import MODES, rendered

pytestmark = pytest.mark.clients

_FLAGS = (
    "scheduler.keepsRoom=false,scheduler.policy=best-fit,monitoring.enabled=true",
    "history.enabled=true",
)


def programs(mode: str) -> Iterator[tuple[list[str], list[str]]]:
    """Commands and options."""
    flags = [word for each in _FLAGS for word in ("--set", each)]
    for each in filter(None, yaml.safe_load_all(rendered(mode, *flags))):
        pod: Obj = each.get("spec", {}).get("template", {}).get("spec", {})
        for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
            if container.get("command", [""])[0] == "gpupool":
                said = [*container["command"][1:], *container.get("args", ())]
                options = [text for text in said if text.startswith("--")]
                yield list(itertools.takewhile(lambda word: word[0] != "-", said)), options


def options_of(words: list[str]) -> set[str]:
    command: click.Command = gpupool
    context = click.Context(command)
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None, words
        command = found
    return {option for each in command.params for option in each.opts}


@pytest.mark.parametrize("mode", MODES)
def test_programs_know_the_options_that_they_are_started_with(mode: str) -> None:
    found = list(programs(mode))
    assert any("--policy=best-fit" in options for _, options in found)
    for words, options in found:
        assert {text.partition("=")[0] for text in options} <= options_of(words), words
