"""`gpupool inspect`: shows shared GPU memory by node and card, as `kubectl inspect gpushare`."""

from typing import TYPE_CHECKING

import click

from gpupool.cli.inspect_view import UNKNOWN, NodeView, PodView, details, fields_of, summary
from gpupool.cli.known_names import nodes
from gpupool.cli.options import access_options
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from gpupool.core.gpu import Inventory
    from gpupool.engine.node_state import Held, NodeState
    from gpupool.scheduler.cluster_state import ClusterState
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_MIB = 100  # if a card has more units than this, a unit is taken to be a MiB, as gpushare does


@click.command("inspect")
@click.argument("node", required=False, shell_complete=nodes)
@click.option("-d", "--details", "in_detail", is_flag=True, help="Also list the pods.")
@output_options("json", "yaml", headers=False, watch=True)
@access_options
def command(node: str | None, in_detail: bool, output: Output, **where: str) -> None:
    """Show how much GPU memory is allocated, by node and card.

    For every node that shares its cards, or for one; in the format of `kubectl inspect gpushare`.
    JSON and YAML always contain the pods.

    \b
    Examples:
      gpupool inspect
      gpupool inspect -d
      gpupool inspect cn-shanghai.192.168.7.157
    """

    async def once(kube: "Kube") -> Prose:
        from gpupool.scheduler.follow import read_cluster
        from kubeclient.resources import NODES

        state = await read_cluster(kube)
        addresses = {n["metadata"]["name"]: _address(n) for n in (await kube.list(NODES)).items}
        if node is not None and node not in addresses:
            await kube.get(NODES, node)  # says that there is no such node
        found = _nodes(state, addresses, node)
        if not found and not output.is_document:
            raise click.ClickException(_none(node))
        return _page(found, in_detail, node)

    async def watch(kube: "Kube") -> None:
        from gpupool.cli.output.live import follow_mirrors
        from gpupool.scheduler.follow import empty_state, mirrors_to_show
        from kubeclient.resources import NODES

        state = empty_state()
        mirrors = await mirrors_to_show(kube, state)
        [nodes] = [mirror for mirror in mirrors if mirror.resource == NODES]

        async def page() -> Prose:
            addresses = {each["metadata"]["name"]: _address(each) for each in nodes}
            if node is not None and node not in addresses:
                await kube.get(NODES, node)
            return _page(_nodes(state, addresses, node), in_detail, node)

        await follow_mirrors(mirrors, output, page)

    if output.watch:
        from gpupool.cli.output.live import interruptible

        with interruptible():
            ask_cluster(watch, doing="", **where)
    else:
        output.show(ask_cluster(once, **where))


def _nodes(state: "ClusterState", addresses: dict[str, str], wanted: str | None) -> list[NodeView]:
    states = (state.cluster.at(int(index)) for index in state.cluster.all_nodes())
    found = [_node(each, addresses) for each in states if _shares(each)]
    return sorted(
        (each for each in found if wanted in (None, each.name)), key=lambda each: each.name
    )


def _none(node: str | None) -> str:
    which = f'Node "{node}" does not share' if node else "No node shares"
    return (
        f"{which} GPU memory: that needs the label cgpu=true. See which cards there are: "
        "gpupool gpu list"
    )


def _page(found: list[NodeView], in_detail: bool, node: str | None) -> Prose:
    most = max((units for each in found for units in each.cards.values()), default=0)
    unit = "MiB" if most > _MIB else "GiB"
    text = details(found) if in_detail else summary(found, unit)
    lines = text.removesuffix("\n").split("\n") if found else [_none(node)]
    items = [fields_of(each) for each in found]
    return Prose("NodeMemoryList", [Line(line) for line in lines], {"items": items}, wraps=False)


def _shares(state: "NodeState") -> bool:
    from gpupool.contract.names import RESOURCE_GPU_MEM

    return bool(state.cards) and state.node.allocatable.get(RESOURCE_GPU_MEM, 0) > 0


def _address(node: "Obj") -> str:
    for address in (node.get("status") or {}).get("addresses") or ():
        if address["type"] == "InternalIP":
            return str(address["address"])
    return "unknown"


def _node(state: "NodeState", addresses: dict[str, str]) -> NodeView:
    indexes = {card.card.uuid: card.card.index for card in state.cards}
    from gpupool.core.gpu import Inventory

    inventory = state.node.inventory or Inventory()
    pods = [_pod(held, indexes, inventory) for held in state.pods.values() if held.pod.gpus]
    return NodeView(
        state.node.name,
        addresses.get(state.node.name, "unknown"),
        {card.card.index: card.card.units for card in state.cards},
        tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name))),
        state.cards[0].card.unit_mib,
    )


def _pod(held: "Held", indexes: dict[str, int], inventory: "Inventory") -> PodView:
    units: dict[int, int] = {}
    known = [hold for hold in held.cards if not hold.possible]
    for hold in known:
        index = indexes.get(hold.uuid, -1)
        units[index] = units.get(index, 0) + hold.units
    if not known:  # nobody can read which cards it holds
        units[-1] = sum(ask.units * ask.cards for ask in held.pod.gpus)
    return PodView(held.pod.name, held.pod.namespace, units, _isolation(held, inventory))


def _isolation(held: "Held", inventory: "Inventory") -> str:
    from gpupool.cli.card_tables import isolation_field
    from gpupool.core.gpu import weakest

    containers = held.allocation.containers
    if not containers:
        return UNKNOWN
    walls = (inventory.wall_of(held.pod.uid, gpus) for gpus in containers)
    return isolation_field(weakest(wall for wall in walls if wall is not None))
