"""Overview: how the cluster is, what its cards do, who waits, and what went wrong lately."""

from functools import partial

from gpupool.console.card_links import linked_cells
from gpupool.console.colours import By, palette
from gpupool.console.gpus import Totals, all_used_mib
from gpupool.console.pages.addresses import address_of
from gpupool.console.parts.page import Page, Shown
from gpupool.console.past import past_of_cards
from gpupool.console.read_cards import MOST_NODES_READ
from gpupool.console.rights import Denied
from gpupool.console.rows.events import EventRow, event_row
from gpupool.console.rows.nodes import NodeRow, node_row
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.visit import Visit
from gpupool.console.words import Translate
from gpupool.history.series import Kind
from kubeclient.resources import EVENTS, NODES, PODS

_MOST_WAITING = 5
_MOST_EVENTS = 8
_MOST_NODES = 8  # with their cards


async def _show(visit: Visit) -> Shown:
    t = visit.t
    nodes = await visit.rows(NODES, node_row)
    pods = await visit.rows(PODS, pod_row)
    found = await visit.gpus()
    waiting = sorted((pod for pod in pods if pod.waits), key=lambda pod: pod.created)
    read = await visit.readings(frozenset(node.name for node in found.nodes[:MOST_NODES_READ]))
    used_mib = all_used_mib(found, read)
    colours = palette(By.NAMESPACE, found.nodes)
    return Shown(
        title=t("Overview"),
        sentence=_sentence(t, nodes, found.totals, len(waiting)),
        command="kubectl get nodes,pods --all-namespaces",
        values={
            "totals": found.totals,
            "nodes": nodes,
            "ready": sum(node.is_ready for node in nodes),
            "cordoned": sum(node.is_cordoned for node in nodes),
            "running": sum(pod.state == "Running" for pod in pods),
            "failing": [pod for pod in pods if _fails(pod)],
            "pods": len(pods),
            "waiting": waiting[:_MOST_WAITING],
            "waiting_all": len(waiting),
            "used_gib": None if used_mib is None else used_mib / 1024,
            "events": await _warnings(visit),
            "address": partial(_address, visit),
            "past": await past_of_cards(visit, Kind.CLUSTER, "", ("overview",)),
            "gpus": [
                (node, linked_cells(visit, node, colours, read))
                for node in found.nodes[:_MOST_NODES]
            ],
        },
    )


def _sentence(t: Translate, nodes: list[NodeRow], totals: Totals, waiting: int) -> str:
    if not totals.cards:
        return t("No node has GPUs. A node has them once its agent has found a driver.")
    cards = t(
        "{free} of {all} cards are free; {used} of {units} GiB are allocated.",
        free=totals.free,
        all=totals.cards,
        used=totals.used,
        units=totals.units,
    )
    trouble = sum(not node.is_ready for node in nodes)
    if trouble:
        cards += " " + t("Nodes that are not ready: {count}.", count=trouble)
    if totals.cards - totals.healthy:
        cards += " " + t("Cards that take no pods: {count}.", count=totals.cards - totals.healthy)
    if waiting:
        cards += " " + t("Waiting pods: {count}.", count=waiting)
    return cards


def _fails(pod: PodRow) -> bool:
    good = ("Running", "Completed", "Succeeded", "Pending", "ContainerCreating", "Terminating")
    return pod.state not in good and not pod.waits


async def _warnings(visit: Visit) -> list[EventRow] | None:
    """None: the visitor may not see events."""
    try:
        events = await visit.rows(EVENTS, event_row)
    except Denied:
        return None
    found = [event for event in events if event.is_warning]
    return sorted(found, key=lambda event: event.last, reverse=True)[:_MOST_EVENTS]


def _address(visit: Visit, event: EventRow) -> str:
    return address_of(visit, event.about_kind, event.about_namespace, event.about)


PAGE = Page(path="overview", menu="overview", show=_show, template="overview.html")
