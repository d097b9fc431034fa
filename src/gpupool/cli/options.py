"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gpupool.local import DEFAULT_NAME

F = TypeVar("F", bound=Callable[..., Any])


def name_option(function: F) -> F:
    """--name: a local cluster of this machine."""
    decorate = click.option(
        "--name", default=DEFAULT_NAME, show_default=True, help="Name of the cluster."
    )
    return decorate(function)


def existing_name_option(function: F) -> F:
    """--name, for commands that use a cluster: the one that runs, if it is not given."""
    decorate = click.option(
        "--name",
        default="",
        callback=lambda _context, _option, name: name or _the_one_that_runs(),
        help=f"Name of the cluster.  [default: the one that runs, or {DEFAULT_NAME}]",
    )
    return decorate(function)


def _the_one_that_runs() -> str:
    from gpupool.local.home import home
    from gpupool.local.server_process import running_clusters

    running = running_clusters(home())
    return running[0].name if len(running) == 1 else DEFAULT_NAME


def access_options(function: F) -> F:
    """--kubeconfig and --context: the cluster that kubectl would choose, or that of the pod."""
    context = click.option("--context", default="", help="Context of the kubeconfig.")
    kubeconfig = click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="Kubeconfig of the cluster.  [default: that of kubectl, of the pod, or of "
        "the local cluster that runs]",
    )
    return kubeconfig(context(function))
