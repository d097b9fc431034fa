"""`gpupool inspect`: shows shared GPU memory by node and card, as `kubectl inspect gpushare`."""

from typing import TYPE_CHECKING

import click

from gpupool.cli.inspect_view import NodeView, PodView, details, summary
from gpupool.cli.options import access_options
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from gpupool.engine.node_state import Held, NodeState
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_MIB = 100  # if a card has more units than this, a unit is taken to be a MiB, as gpushare does


@click.command("inspect")
@click.argument("node", required=False)
@click.option("-d", "--details", "in_detail", is_flag=True, help="Also list the pods.")
@access_options
def command(node: str | None, in_detail: bool, **where: str) -> None:
    """Show how much GPU memory is allocated, by node and card.

    For every node that shares its cards, or for one; in the format of `kubectl inspect gpushare`.
    """

    async def ask(kube: "Kube") -> list[NodeView]:
        from gpupool.scheduler.follow import read_cluster
        from kubeclient.resources import NODES

        state = await read_cluster(kube)
        addresses = {n["metadata"]["name"]: _address(n) for n in (await kube.list(NODES)).items}
        if node and node not in addresses:
            await kube.get(NODES, node)  # says that there is no such node
        states = (state.cluster.at(int(index)) for index in state.cluster.all_nodes())
        return [_node(each, addresses) for each in states if _shares(each)]

    found = [each for each in ask_cluster(ask, **where) if node in (None, each.name)]
    if not found:
        which = f'Node "{node}" does not share' if node else "No node shares"
        raise click.ClickException(
            f"{which} GPU memory: that needs the label cgpu=true. See which cards there are: "
            "gpupool gpu list"
        )
    found.sort(key=lambda each: each.name)
    most = max(units for each in found for units in each.cards.values())
    unit = "MiB" if most > _MIB else "GiB"
    click.echo(details(found) if in_detail else summary(found, unit), nl=False)


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
    pods = [_pod(held, indexes) for held in state.pods.values() if held.pod.gpus]
    return NodeView(
        state.node.name,
        addresses.get(state.node.name, "unknown"),
        {card.card.index: card.card.units for card in state.cards},
        tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name))),
    )


def _pod(held: "Held", indexes: dict[str, int]) -> PodView:
    units: dict[int, int] = {}
    known = [hold for hold in held.cards if not hold.possible]
    for hold in known:
        index = indexes.get(hold.uuid, -1)
        units[index] = units.get(index, 0) + hold.units
    if not known:  # nobody can read which cards it holds
        units[-1] = sum(ask.units * ask.cards for ask in held.pod.gpus)
    return PodView(held.pod.name, held.pod.namespace, units)
