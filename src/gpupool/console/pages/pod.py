"""One pod: where it is and what it holds; while it waits: why, node by node and card by card."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpupool.console.gpus import Overview, Totals, asked_words, used_of
from gpupool.console.model import Model
from gpupool.console.pages import pod_actions
from gpupool.console.pages.edit import edit_button
from gpupool.console.pages.node import events_of
from gpupool.console.pages.pod_owner import owner_cell
from gpupool.console.pages.pod_places import found_pod, pod_crumbs
from gpupool.console.pages.pods import pod_state, share_words
from gpupool.console.pages.resize import RESIZE, resize_action
from gpupool.console.parts.page import Page, Shown
from gpupool.console.past import past_of_pod
from gpupool.console.rights import Denied, Right
from gpupool.console.rows.environment import environments
from gpupool.console.rows.pods import PodRow, pod_row
from gpupool.console.said import said, shortly
from gpupool.console.visit import Visit
from gpupool.console.words import Translate
from gpupool.console.yaml_view import yaml_of
from gpupool.core.readings import CardReading
from gpupool.engine.card_words import card_summary
from gpupool.engine.explain import NodeReasons, explain
from kubeclient.objects import Obj
from kubeclient.resources import PODS

_MOST_REASONS = 200  # nodes in one explanation


@dataclass(frozen=True, slots=True)
class Why:
    """Why a pod waits."""

    message: str
    summary: str
    next_step: str
    nodes: tuple[NodeReasons, ...]
    left: int  # nodes that are not shown


async def _show(visit: Visit) -> Shown:
    t, namespace, name = visit.t, visit.names["namespace"], visit.names["name"]
    pod = await found_pod(visit)
    row = await _with_walls(visit, pod_row(pod))
    why = await _why(visit, pod, row) if row.waits else None
    lacks = await visit.lacks(Right("delete", PODS, namespace))
    looks = await pod_actions.pod_looks(visit, row)
    read = await visit.readings(frozenset({row.node})) if row.shares else {}
    return Shown(
        title=name,
        sentence=pod_sentence(t, row, why),
        crumbs=pod_crumbs(visit),
        actions=(
            *(() if row.waits else looks),
            *await resize_action(visit, row),
            await edit_button(visit, PODS, namespace, name),
            *pod_actions.pod_actions(visit, row, lacks),
            *(looks if row.waits else ()),  # greyed out: not what one looks at first
        ),
        command=f"kubectl describe pod {name} --namespace {namespace}",
        values={
            "row": row,
            "owner": await owner_cell(visit, row),
            "pod": pod,
            "state": pod_state(t, row),
            "why": why,
            "step": said(t, why.next_step) if why else "",
            "asks": asked_words(t, row.asks),
            "used": _used(row, read),
            "past": await past_of_pod(visit, row, ("pods", namespace, name)),
            "events": await events_of(visit, "Pod", name, namespace),
            "environments": environments(pod),
            "yaml": yaml_of(pod),
        },
    )


async def _with_walls(visit: Visit, row: PodRow) -> PodRow:
    """With what holds each share, as the agent of its node says; the allocation's word where the
    visitor may not see that."""
    try:
        found = await visit.gpus() if row.shares else Overview((), Totals())
    except Denied:
        return row
    told = {
        view.card.uuid: part.wall_class
        for node in found.nodes
        if node.name == row.node
        for view in node.cards
        for part in view.parts
        if (part.namespace, part.pod) == (row.namespace, row.name)
    }
    shares = (replace(each, wall=told.get(each.uuid, each.wall)) for each in row.shares)
    return replace(row, shares=tuple(shares))


def pod_sentence(t: Translate, row: PodRow, why: Why | None = None) -> str:
    if row.waits:
        wants = asked_words(t, row.asks)
        words = t("Waits for {asks}.", asks=wants) if row.asks else t("Waits for a node.")
        because = said(t, why.summary) if why and why.summary else shortly(t, row.why)
        return f"{words} {because}".strip()
    if not row.shares:
        return t("On node {node}. It holds no card.", node=row.node or "–")
    held = "; ".join(share_words(t, share) for share in row.shares)
    return t("On node {node}, {held}.", node=row.node, held=held)


def _used(row: PodRow, read: Mapping[str, CardReading]) -> dict[str, int]:
    """MiB that its containers use, by uuid of the card; without those that nobody knows."""
    mine = (row.namespace, row.name)
    return {uuid: mib for (uuid, *pod), mib in used_of(read).items() if tuple(pod) == mine}


async def _why(visit: Visit, pod: Obj, row: PodRow) -> Why | None:
    """None: the visitor may not see enough to know."""
    try:
        model = await visit.model()
    except Denied:
        return None
    return why_of(model, pod)


def why_of(model: Model, pod: Obj) -> Why:
    request = model.request_of(pod)
    found = explain(model.cluster, request)
    # Where only cards are in the way comes first: the pod is nearest to those nodes.
    nodes = sorted(found.nodes, key=lambda node: not node.cards)
    return Why(
        message=found.message,
        summary=card_summary(model.cluster, request),
        next_step=model.next_step(request),
        nodes=tuple(nodes[:_MOST_REASONS]),
        left=max(0, len(nodes) - _MOST_REASONS),
    )


PAGE = Page(path="pods/{namespace}/{name}", menu="pods", show=_show, template="pod.html")
ACTIONS = (*pod_actions.ACTIONS, RESIZE)
