"""`gpupool gpu`: lists, cordons and uncordons cards of nodes, and breaks simulated ones."""

import contextlib
import logging
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpupool.cli.known_names import cards, faults, namespaces, nodes
from gpupool.cli.options import access_options, existing_name_option
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from gpupool.cli.output.pages import Page
    from gpupool.core.gpu import Inventory
    from gpupool.hardware.simdriver_faults import Fault
    from gpupool.local.home import ClusterDirectory
    from gpupool.orders.cards import Change
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

log = logging.getLogger(__name__)

_WATCH_S = 5.0  # between two readings: nothing tells that a card does something else now


@click.group("gpu")
def command() -> None:
    """List the cards of nodes, and take single cards out of use.

    Works on the cluster that kubectl uses.

    \b
    Examples:
      gpupool gpu list
      gpupool gpu pods
      gpupool gpu cordon cn-shanghai.192.168.7.158 0
    """


@command.command("list", short_help="List the cards, and how much of them is in use.")
@click.argument("node", required=False, shell_complete=nodes)
@click.option(
    "--agents",
    "namespace",
    default="kube-system",
    show_default=True,
    metavar="NAMESPACE",
    shell_complete=namespaces,
    help="Where the agents run, which are asked for readings.",
)
@output_options("wide", "json", "yaml", watch=True)
@access_options
def list_cards(node: str | None, namespace: str, output: Output, **where: str) -> None:
    """List the cards of all nodes, or of one, and how much of them is in use.

    Used and free memory, utilisation, temperature and power come from the agents of the nodes, when
    you ask. That needs the right to get and create pods/portforward in the agents' namespace; what
    nobody tells is shown as unknown.

    \b
    Examples:
      gpupool gpu list
      gpupool gpu list cn-shanghai.192.168.7.158
      gpupool gpu list --watch
      gpupool gpu list -o json
    """
    from gpupool.cli import namespaced
    from gpupool.cli.card_readings import CardReadings
    from gpupool.cli.card_tables import CardRow, cards_table
    from gpupool.cli.output.live import Source, show_objects
    from kubeclient.resources import NODES

    noted: list[str] = []  # said below the table: while it is made, a line of progress may be there
    readings = CardReadings(namespace, log.warning if output.watch else noted.append)

    async def page(kube: "Kube", objects: "Sequence[list[Obj]]") -> "Page":
        [nodes] = objects
        if node is not None and not nodes:
            await kube.get(NODES, node)  # says that there is no such node
        nodes.sort(key=lambda each: each["metadata"]["name"])
        found = {each["metadata"]["name"]: _inventory(each) for each in nodes}
        cards = [(name, card) for name, each in found.items() for card in each.cards]
        read = await readings.by_card(kube, frozenset(name for name, _ in cards))
        if cards and not read:
            await namespaced.check(kube, namespace)
        rows = [
            CardRow(name, card, read.get(card.uuid), found[name].wall, found[name].ways)
            for name, card in cards
        ]
        cards_of = f"any card of node {node}" if node else "any card"
        empty = f"No agent has reported {cards_of}. See whether an agent runs: gpupool doctor"
        if not rows and not output.is_document and not output.watch:
            raise click.ClickException(empty)
        return cards_table(rows, empty)

    query = {} if node is None else {"fieldSelector": f"metadata.name={node}"}
    show_objects(output, [Source(NODES, query=query)], page, _WATCH_S, **where)
    for words in noted:
        _note(words)


def _note(words: str) -> None:
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        words = textwrap.fill(words, width, subsequent_indent="  ", break_on_hyphens=False)
    click.echo(words, err=True)


@command.command("pods", short_help="List the pods that have cards.")
@click.argument("node", required=False, shell_complete=nodes)
@click.option(
    "-n",
    "--namespace",
    default="",
    shell_complete=namespaces,
    help="Only pods of this namespace.  [default: all]",
)
@output_options("wide", "json", "yaml", watch=True)
@access_options
def list_pods(node: str | None, namespace: str, output: Output, **where: str) -> None:
    """List the pods that have cards, with node, card, share and isolation.

    \b
    Examples:
      gpupool gpu pods
      gpupool gpu pods cn-shanghai.192.168.7.158 -n research
      gpupool gpu pods -o wide
    """
    from gpupool.cli import namespaced
    from gpupool.cli.card_tables import shares_table
    from gpupool.cli.output.live import Source, show_objects
    from kubeclient.mirror import key_of
    from kubeclient.resources import NODES, PODS

    async def page(kube: "Kube", objects: "Sequence[list[Obj]]") -> "Page":
        [pods] = objects
        if node is not None and not pods:
            await kube.get(NODES, node)  # a wrong name must not look like a node without pods
        if namespace and not pods:
            await namespaced.check(kube, namespace)
        on = f" on node {node}" if node else ""
        among = f" of namespace {namespace}" if namespace else ""
        empty = f"No pod{among} has a card{on}."
        return shares_table(
            sorted(pods, key=key_of),
            with_namespace=not namespace,
            empty=empty,
            inventories=await _inventories(kube, pods),
        )

    query = {} if node is None else {"fieldSelector": f"spec.nodeName={node}"}
    show_objects(output, [Source(PODS, namespace, query)], page, **where)


@command.command("cordon", short_help="Give no new pods to a card; its pods stay.")
@click.argument("node", shell_complete=nodes)
@click.argument("card", shell_complete=cards)
@click.option("--reason", default="", help="Shown wherever the card is listed.")
@access_options
def cordon(node: str, card: str, reason: str, kubeconfig: str, context: str) -> None:
    """Give no new pods to a card, named by index or uuid; its pods stay.

    \b
    Examples:
      gpupool gpu cordon cn-shanghai.192.168.7.158 0 --reason "fan is loud"
    """
    from gpupool.orders.cards import cordoned

    shown = ask_cluster(
        lambda kube: _order(kube, node, card, cordoned(reason)),
        kubeconfig=kubeconfig,
        context=context,
    )
    click.echo(f"{shown} of {node} cordoned.")


@command.command("uncordon")
@click.argument("node", shell_complete=nodes)
@click.argument("card", shell_complete=cards)
@access_options
def uncordon(node: str, card: str, kubeconfig: str, context: str) -> None:
    """Take a card back into use, and forget its errors so far.

    \b
    Examples:
      gpupool gpu uncordon cn-shanghai.192.168.7.158 0
    """
    from gpupool.orders.cards import cleared

    shown = ask_cluster(
        lambda kube: _order(kube, node, card, cleared), kubeconfig=kubeconfig, context=context
    )
    click.echo(f"{shown} of {node} uncordoned.")


@command.command("fault", short_help="Break or repair a simulated card.")
@click.argument("node", shell_complete=nodes)
@click.argument("card", shell_complete=cards)
@click.argument("fault", shell_complete=faults)
@existing_name_option
def fault(node: str, card: str, fault: str, name: str) -> None:
    """Break or repair a simulated card of a local cluster.

    CARD is its index or uuid, or `all` for every card of the node.

    \b
    FAULT is one of:
      xid=N            the driver reports this error: 79 loses the card
      lost             it falls off the bus, without an XID before
      ecc=N            N more uncorrectable memory errors
      ecc-corrected=N  N more corrected memory errors
      temperature=C    it shows this temperature; 0: as its load is
      memory=MIB       processes outside Kubernetes use this much of it
      utilisation=P    and this much of its compute, in percent
      mig=1            MIG mode is on; 0: off; only cards from Ampere on have it
      fail=CALL:ERROR  this function of CUDA or NVML fails: cuMemAlloc_v2:2
      hang=CALL        this function does not return
      recover          repairs the card, as a reset does

    The command ends when the node's agent has noticed. docs/simulated-gpus.md says more.

    \b
    Examples:
      gpupool gpu fault cn-shanghai.192.168.7.158 0 xid=79
      gpupool gpu fault cn-shanghai.192.168.7.158 all recover
    """
    from gpupool.agent.xid_policy import load_policy
    from gpupool.cli.fault_words import fault_words
    from gpupool.cli.which_cluster import chosen
    from gpupool.hardware.simdriver import inject, read_cards
    from gpupool.hardware.simdriver_faults import FaultKind, NotAFault, parse_fault
    from gpupool.hardware.simdriver_state import SimdriverError
    from gpupool.local.node_gpus import node_files

    cluster = chosen(name)
    files = node_files(cluster.path, node)
    if not files.state.exists():
        raise click.ClickException(
            f'Node "{node}" of cluster "{cluster.name}" has no simulated cards. See which have: '
            f"gpupool gpu list --name {cluster.name}"
        )
    before = _before(cluster, node)
    try:
        wanted = parse_fault(fault)
        place = None if card == "all" else int(card) if card.isdecimal() else card
        inject(files, place, wanted)
        found = [one for one in read_cards(files) if place in (None, one.index, one.uuid)]
        cards = [card] if place is not None else [str(one.index) for one in found]
    except (NotAFault, SimdriverError) as error:
        raise click.ClickException(str(error)) from error
    for one in cards if wanted.kind is FaultKind.RECOVER else ():
        _tell_of_reset(cluster, node, one)
    if before is not None:
        _wait_for_agent(cluster, node, wanted, before, frozenset(one.uuid for one in found))
    happened = fault_words(wanted, load_policy())
    click.echo(f"{'All cards' if place is None else f'Card {card}'} of {node}: {happened}.")
    if wanted.kind is not FaultKind.RECOVER:
        named = f" --name {name}" if name else ""
        click.echo(f"Repair: gpupool gpu fault {node} {card} recover{named}")


def _wait_for_agent(
    cluster: "ClusterDirectory",
    node: str,
    fault: "Fault",
    before: "Inventory",
    repaired: "frozenset[str]",
) -> None:
    from gpupool.cli.fault_notice import changes_health, until_noticed, until_read
    from gpupool.hardware.simdriver_faults import FaultKind

    async def wait(kube: "Kube") -> None:
        await until_noticed(kube, node, before, _inventory)
        if fault.kind is FaultKind.RECOVER:
            await until_read(kube, node, repaired)

    if changes_health(fault, before):
        with contextlib.suppress(click.ClickException):
            ask_cluster(wait, kubeconfig=str(cluster.kubeconfig))


def _before(cluster: "ClusterDirectory", node: str) -> "Inventory | None":
    """What the agent says of the cards now. None: nobody can be asked, or no agent answers."""
    from kubeclient.resources import NODES

    async def ask(kube: "Kube") -> "Inventory":
        return _inventory(await kube.get(NODES, node))

    with contextlib.suppress(click.ClickException):
        return ask_cluster(ask, kubeconfig=str(cluster.kubeconfig))
    return None


def _tell_of_reset(cluster: "ClusterDirectory", node: str, card: str) -> None:
    """Orders the node's agent to forget the card's errors. Errors are ignored: the cluster may be
    stopped, or the node may have no agent."""
    from gpupool.orders.cards import cleared

    with contextlib.suppress(click.ClickException):
        ask_cluster(
            lambda kube: _order(kube, node, card, cleared), kubeconfig=str(cluster.kubeconfig)
        )


async def _order(kube: "Kube", node: str, card: str, change: "Change") -> str:
    """The card's description."""
    from gpupool.orders.cards import CannotOrder, order_card

    try:
        found = await order_card(kube, node, card, change)
    except CannotOrder as error:
        raise click.ClickException(str(error)) from error
    return f"Card {found.index} ({found.model}, {found.uuid})"


async def _inventories(kube: "Kube", pods: "Sequence[Obj]") -> "dict[str, Inventory]":
    """Of the nodes of these pods. Who may not read nodes is not told which wall holds them."""
    from kubeclient.errors import KubeError
    from kubeclient.resources import NODES

    wanted = {pod["spec"].get("nodeName") for pod in pods}
    try:
        nodes = (await kube.list(NODES)).items if wanted else []
    except KubeError:
        return {}
    return {
        each["metadata"]["name"]: _inventory(each)
        for each in nodes
        if each["metadata"]["name"] in wanted
    }


def _inventory(node: "Obj") -> "Inventory":
    from gpupool.contract.nodes import node_of
    from gpupool.core.gpu import Inventory

    return node_of(node).inventory or Inventory()
