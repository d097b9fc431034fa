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
