"""Options of the idle policy, for the collector."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from gpupool.cli.durations import Duration
from gpupool.cli.known_names import namespaces

if TYPE_CHECKING:
    from gpupool.history.idle_policy import IdlePolicy

F = TypeVar("F", bound=Callable[..., Any])

_IDLE = Duration(least_s=1800)


def idle_options(function: F) -> F:
    """The command gets `policy`; None: there is none."""

    @functools.wraps(function)
    def with_policy(
        *arguments: Any,
        warn_s: int | None,
        scale_s: int | None,
        spared: tuple[str, ...],
        **given: Any,
    ) -> Any:
        return function(*arguments, policy=_policy(warn_s, scale_s, spared), **given)

    warn = click.option(
        "--idle-warn",
        "warn_s",
        type=_IDLE,
        metavar="TIME",
        help="Warn workloads, by an event, that have held cards so long without using them.",
    )
    scale = click.option(
        "--idle-scale-to-zero",
        "scale_s",
        type=_IDLE,
        metavar="TIME",
        help="Scale them to zero after so long; with --idle-warn.",
    )
    spare = click.option(
        "--idle-except",
        "spared",
        multiple=True,
        metavar="NAMESPACE",
        shell_complete=namespaces,
        help="Leave idle workloads of this namespace alone. Can be given several times.",
    )
    return cast(F, warn(scale(spare(with_policy))))


def _policy(
    warn_s: int | None, scale_s: int | None, spared: tuple[str, ...]
) -> "IdlePolicy | None":
    from gpupool.history.idle_policy import IdlePolicy

    if warn_s is None:
        if scale_s is not None or spared:
            raise click.UsageError("--idle-scale-to-zero and --idle-except need --idle-warn.")
        return None
    if scale_s is not None and scale_s <= warn_s:
        raise click.UsageError(
            "--idle-scale-to-zero must be longer than --idle-warn: people need time to answer."
        )
    return IdlePolicy(warn_s, scale_s, frozenset(spared))
