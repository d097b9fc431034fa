"""Options that several commands share."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from gpupool.cli.known_names import clusters, contexts, files, namespaces
from gpupool.local import DEFAULT_NAME

# The names are written here because the engine takes long to load.
POLICY_NAMES = "residue, fgd, best-fit or spread"
POLICY_HELP = f"Packing policy: {POLICY_NAMES}.  [default: residue]"

F = TypeVar("F", bound=Callable[..., Any])


def name_option(function: F) -> F:
    """--name: a local cluster of this machine."""
    decorate = click.option(
        "--name",
        default=DEFAULT_NAME,
        show_default=True,
        shell_complete=clusters,
        help="Name of the cluster.",
    )
    return decorate(function)


def existing_name_option(function: F) -> F:
    """--name, for commands that use a cluster. If it is not given: the one that KUBECONFIG names,
    else the one that runs."""
    decorate = click.option(
        "--name",
        default="",
        callback=lambda _context, _option, name: name or _the_one_in_use(),
        shell_complete=clusters,
        help="Name of the cluster.  [default: the one that KUBECONFIG names, or that runs, or "
        f"{DEFAULT_NAME}]",
    )
    return decorate(function)


def _the_one_in_use() -> str:
    import os
    from pathlib import Path

    from gpupool.local.home import home
    from gpupool.local.server_process import running_clusters

    named = [Path(each).absolute() for each in os.environ.get("KUBECONFIG", "").split(os.pathsep)]
    place = home()
    for cluster in place.clusters():
        if cluster.kubeconfig in named:
            return cluster.name
    running = running_clusters(place)
    return running[0].name if len(running) == 1 else DEFAULT_NAME


def namespace_option(what: str) -> Callable[[F], F]:
    """-n, --namespace of `what`. Empty: that of the context, see `chosen_namespace`."""
    return click.option(
        "-n",
        "--namespace",
        default="",
        shell_complete=namespaces,
        help=f"Namespace of the {what}.  [default: that of the context, or default]",
    )


def chosen_namespace(given: str, where: Mapping[str, str]) -> str:
    """The namespace that kubectl would use, if none is given."""
    import os

    from kubeclient.contexts import namespace_of

    kubeconfig, context = where.get("kubeconfig", ""), where.get("context", "")
    return given or namespace_of(os.environ, kubeconfig=kubeconfig, context=context)


def access_options(function: F) -> F:
    """--kubeconfig and --context: the cluster that kubectl would choose, or that of the pod."""
    context = click.option(
        "--context", default="", shell_complete=contexts, help="Context of the kubeconfig."
    )
    kubeconfig = click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        shell_complete=files,
        help="Kubeconfig of the cluster.  [default: that of kubectl, of the pod, or of "
        "the local cluster that runs]",
    )
    return kubeconfig(context(function))
