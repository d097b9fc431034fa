"""Names that the shell completes: of clusters, nodes, cards, pods and so on.

Each function is a `shell_complete` of click. Whatever goes wrong, it offers nothing: nobody wants
an error for a press of Tab. A cluster has a second to answer.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj
    from kubeclient.resources import Resource

    Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]
    # A name, or a name and what it is.
    Names = Iterable[str | tuple[str, str]]

Answer = TypeVar("Answer")
_ANSWER_LIMIT_S = 1.0
_MOST = "500"


def _quiet(names: "Callable[[click.Context], Names]") -> "Complete":
    def complete(
        context: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        from kubeclient.errors import KubeError

        try:
            found = [(each, "") if isinstance(each, str) else each for each in names(context)]
        except (click.ClickException, KubeError, OSError, ValueError, KeyError, ImportError):
            return []
        return [
            CompletionItem(name, help=what or None)
            for name, what in found
            if name.startswith(incomplete)
        ]

    return complete


def files(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    return [CompletionItem(incomplete, type="file")]


@_quiet
def clusters(_: click.Context) -> "Names":
    from gpupool.local.home import home

    return [cluster.name for cluster in home().clusters()]


@_quiet
def examples(_: click.Context) -> "Names":
    from gpupool.cli.example_files import known_examples

    return list(known_examples())


@_quiet
def quotas(_: click.Context) -> "Names":
    from gpupool.local.config.quotas import quota_names

    return [f"{name}=" for name in quota_names()]


@_quiet
def instance_types(_: click.Context) -> "Names":
    from gpupool.local.config.catalogue import catalogue

    return list(catalogue().instance_types)


@_quiet
def machines(_: click.Context) -> "Names":
    from gpupool.local.home import home
    from gpupool.local.machines import Machines

    return [name for name, each in Machines(home()).all().items() if each.is_free]


@_quiet
def policies(_: click.Context) -> "Names":
    from gpupool.engine.policies import POLICIES

    return list(POLICIES)


@_quiet
def faults(_: click.Context) -> "Names":
    from gpupool.hardware.simdriver_faults import FaultKind

    alone = (FaultKind.LOST, FaultKind.RECOVER)
    return [kind if kind in alone else f"{kind}=" for kind in FaultKind]


@_quiet
def contexts(context: click.Context) -> "Names":
    from kubeclient.contexts import contexts_of

    return list(contexts_of(os.environ, context.params.get("kubeconfig") or "").namespaces)


@_quiet
def nodes(context: click.Context) -> "Names":
    from kubeclient.resources import NODES

    return _listed(context, NODES)


@_quiet
def namespaces(context: click.Context) -> "Names":
    from kubeclient.resources import NAMESPACES

    return _listed(context, NAMESPACES)


@_quiet
def pods(context: click.Context) -> "Names":
    from kubeclient.resources import PODS

    return _listed(context, PODS, _namespace(context))


@_quiet
def services(context: click.Context) -> "Names":
    from kubeclient.resources import SERVICES

    return _listed(context, SERVICES, _namespace(context))


@_quiet
def containers(context: click.Context) -> "Names":
    from kubeclient.resources import PODS

    # While the value of an option is missing, click leaves the arguments in `args`.
    name = context.params["pod"] or "".join(context.args[:1])
    pod = _ask(context, lambda kube: kube.get(PODS, name, _namespace(context)))
    return [each["name"] for each in pod["spec"]["containers"]]


@_quiet
def cards(context: click.Context) -> "Names":
    from gpupool.contract.nodes import node_of
    from kubeclient.resources import NODES

    node = _ask(context, lambda kube: kube.get(NODES, context.params["node"]))
    inventory = node_of(node).inventory
    found = inventory.cards if inventory else ()
    return [(str(card.index), f"{card.model}, {card.uuid}") for card in found]


def _namespace(context: click.Context) -> str:
    from kubeclient.contexts import namespace_of

    return context.params.get("namespace") or namespace_of(
        os.environ,
        kubeconfig=context.params.get("kubeconfig") or "",
        context=context.params.get("context") or "",
    )


def _listed(context: click.Context, resource: "Resource", namespace: str = "") -> list[str]:
    async def ask(kube: "Kube") -> "list[Obj]":
        found = await kube.list(resource, namespace, query={"limit": _MOST}, metadata_only=True)
        return found.items

    return [each["metadata"]["name"] for each in _ask(context, ask)]


def _ask(context: click.Context, work: "Callable[[Kube], Awaitable[Answer]]") -> "Answer":
    """Of the cluster that the command would use, as far as its options are written already."""
    from gpupool.cli.programs import ask_within

    where = {key: context.params.get(key) or "" for key in ("kubeconfig", "context")}
    if name := context.params.get("name"):
        from gpupool.local.home import home

        where["kubeconfig"] = str(home().existing(name).kubeconfig)
    return ask_within(_ANSWER_LIMIT_S, work, where)
