"""One node: its cards and who is on them, pods, labels, taints, conditions, events, YAML."""

from collections.abc import Mapping

from gpupool.console.card_cells import CardCell
from gpupool.console.card_links import linked_cells
from gpupool.console.colours import By, palette
from gpupool.console.gpus import NodeView
from gpupool.console.pages import node_actions, node_drain, node_remove
from gpupool.console.pages.edit import edit_button
from gpupool.console.pages.nodes import cpu_bar, memory_bar, node_state
from gpupool.console.pages.pods import pod_table
from gpupool.console.parts.lines import taint_words
from gpupool.console.parts.page import Page, Shown
from gpupool.console.parts.table import RowAction, view
from gpupool.console.past import Past, past_of_cards
from gpupool.console.rights import Denied, Right
from gpupool.console.rows.events import EventRow, event_row
from gpupool.console.rows.node_use import NodeUse, node_use
from gpupool.console.rows.nodes import NodeRow, node_row
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.visit import Visit
from gpupool.console.words import Translate
from gpupool.console.yaml_view import yaml_of
from gpupool.core.readings import CardReading
from gpupool.history.series import Kind
from kubeclient.resources import EVENTS, NODES, PODS

_MOST_EVENTS = 30


async def _show(visit: Visit) -> Shown:
    t, name = visit.t, visit.names["node"]
    node = await node_actions.known_node(visit)
    row = node_row(node)
    gpus = await _gpus(visit, name)
    pods = await _pods(visit, name)
    use = await _use(visit, name)
    read = await visit.readings(frozenset({name})) if row.cards else {}
    status, spec = node.get("status") or {}, node.get("spec") or {}
    return Shown(
        title=name,
        sentence=_sentence(t, row, gpus),
        crumbs=((t("Nodes"), visit.link("nodes")),),
        actions=(*await _actions(visit, row), await edit_button(visit, NODES, "", name)),
        command=f"kubectl describe node {name}",
        values={
            "row": row,
            "state": node_state(t, row),
            "gpus": gpus,
            "readings": read,
            "past": await _past(visit, name, row),
            "cells_of_cards": await _cells(visit, gpus, read, pods or []) if gpus else (),
            "pods": view(pod_table(visit), pods, {}) if pods is not None else None,
            "cpu": cpu_bar(row, use),
            "memory": memory_bar(row, use),
            "held_pods": use.pods if use is not None else None,
            "taints": [taint_words(each) for each in spec.get("taints") or []],
            "info": status.get("nodeInfo") or {},
            "conditions": status.get("conditions") or [],
            "capacity": _capacity(status),
            "events": await events_of(visit, "Node", name),
            "yaml": yaml_of(node),
        },
    )


def _sentence(t: Translate, row: NodeRow, gpus: NodeView | None) -> str:
    if not row.is_ready:
        return t("Not ready: {why}", why=row.trouble or t("its kubelet has not reported"))
    if gpus is None:
        return t("Ready. It has no cards.") if not row.cards else t("Ready.")
    free = sum(card.card.units - card.used for card in gpus.cards if card.card.takes_pods)
    words = t(
        "{cards} × {model}; {free} of {units} GiB are free.",
        cards=row.cards,
        model=", ".join(row.models),
        free=free,
        units=row.units,
    )
    return words + " " + t("It gets no new pods.") if row.is_cordoned else words


async def _actions(visit: Visit, row: NodeRow) -> tuple[RowAction, ...]:
    t, name = visit.t, row.name
    lacks = await visit.lacks(Right("patch", NODES))
    remove = visit.link("nodes", name, "remove")
    return (
        node_actions.switch(visit, name, is_cordoned=row.is_cordoned, lacks=lacks),
        await node_drain.drain_action(visit, name),
        *node_actions.texts(visit, name, lacks),
        RowAction(
            t("Remove"), remove, await visit.lacks(Right("delete", NODES)), is_dangerous=True
        ),
    )


async def _use(visit: Visit, name: str) -> NodeUse | None:
    """None for a visitor who may not see all pods."""
    try:
        return node_use((await visit.model()).cluster, name)
    except Denied:
        return None


async def _gpus(visit: Visit, name: str) -> NodeView | None:
    try:
        found = await visit.gpus()
    except Denied:
        return None
    return next((node for node in found.nodes if node.name == name), None)


async def _cells(
    visit: Visit, gpus: NodeView, read: Mapping[str, CardReading], pods: list[PodRow]
) -> tuple[CardCell, ...]:
    colours = palette(By.NAMESPACE, (await visit.gpus()).nodes)
    return linked_cells(visit, gpus, colours, read, pods)


async def _past(visit: Visit, name: str, row: NodeRow) -> Past | None:
    """None: it has no cards."""
    if not row.cards:
        return None
    return await past_of_cards(visit, Kind.NODE, name, ("nodes", name))


async def _pods(visit: Visit, name: str) -> list[PodRow] | None:
    try:
        pods = await visit.rows(PODS, pod_row, "")
    except Denied:
        return None
    return [pod for pod in pods if pod.node == name]


def _capacity(status: dict[str, object]) -> list[tuple[str, str, str]]:
    all_, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    assert isinstance(all_, dict)
    assert isinstance(allocatable, dict)
    return [(name, str(all_[name]), str(allocatable.get(name, ""))) for name in sorted(all_)]


async def events_of(
    visit: Visit, kind: str, name: str, namespace: str = ""
) -> list[EventRow] | None:
    """Those about one object, the latest first; None: the visitor may not see events."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        watch = await visit.watch(EVENTS, namespace, field_selector=selector)
    except Denied:
        return None
    rows = watch.rows(event_row).values()
    return sorted(rows, key=lambda event: event.last, reverse=True)[:_MOST_EVENTS]


PAGE = Page(path="nodes/{node}", menu="nodes", show=_show, template="node.html")
PAGES = (PAGE, node_drain.PAGE)
ACTIONS = (*node_actions.ACTIONS, *node_drain.ACTIONS, *node_remove.ACTIONS)
