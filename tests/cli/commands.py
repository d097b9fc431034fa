"""All commands of gpupool, with the words that people type for them."""

import inspect
from collections.abc import Iterator

import click

from gpupool.cli.main import gpupool

EXAMPLES = "\b\nExamples:\n"


def every_command(
    command: click.Command = gpupool, path: str = "gpupool"
) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from every_command(below, f"{path} {name}")


def examples_of(command: click.Command) -> list[str]:
    _, _, text = inspect.cleandoc(command.help or "").partition(EXAMPLES)
    return [line.strip() for line in text.splitlines() if line.strip()]
