"""Options that several commands have."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gpupool.local import DEFAULT_NAME

F = TypeVar("F", bound=Callable[..., Any])


def name_option(function: F) -> F:
    decorate = click.option(
        "--name", default=DEFAULT_NAME, show_default=True, help="Name of the cluster."
    )
    return decorate(function)
