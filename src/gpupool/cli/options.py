"""Options that several commands share."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import click

from gpupool.cli.known_names import clusters, contexts, files, namespaces

# The names are written here because the engine takes long to load.
POLICY_NAMES = "residue, fgd, best-fit or spread"
POLICY_HELP = f"Packing policy: {POLICY_NAMES}.  [default: residue]"

POD_WORDS = "pods pod po"

F = TypeVar("F", bound=Callable[..., Any])


def existing_name_option(function: F) -> F:
    """--name of a local cluster. `which_cluster.chosen` says which one is meant, also without."""
    decorate = click.option(
        "--name",
        default="",
        shell_complete=clusters,
        help="Name of the cluster.  [default: the one that KUBECONFIG names, or that runs]",
    )
    return decorate(function)


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


def name_and_namespace(kind: str, given: str, namespace: str) -> tuple[str, str]:
    """Name and namespace of what a person copied: pod/NAME as kubectl prints it, NAMESPACE/NAME as
    we do, or a name alone. `kind`: its words, "pods pod po". Raises UsageError."""
    before, _, name = given.partition("/")
    if not before or not name or "/" in name:
        return given, namespace
    if before in kind.split():
        return name, namespace
    if namespace not in ("", before):
        raise click.UsageError(f"{given} is in namespace {before}, -n says {namespace}.")
    return name, before


def access_options(function: F) -> F:
    """--name, --kubeconfig and --context: a local cluster, or the one that kubectl would choose, or
    that of the pod. The command gets `kubeconfig` and `context`."""

    @functools.wraps(function)
    def with_access(*arguments: Any, name: str, **given: Any) -> Any:
        if name:
            if given["kubeconfig"] or given["context"]:
                raise click.UsageError(
                    "--name chooses the cluster alone, without --kubeconfig and --context."
                )
            from gpupool.cli.which_cluster import kubeconfig_of

            given["kubeconfig"] = kubeconfig_of(name)
        return function(*arguments, **given)

    named = click.option(
        "--name", default="", shell_complete=clusters, help="Name of a local cluster."
    )
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
    return cast(F, named(kubeconfig(context(with_access))))
