"""The pages, as HTML. The template engine escapes all values."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from gpupool.console.overview import (
    ClusterView,
    NodeView,
    Part,
    Waiting,
    asked,
    matching,
    overview,
)
from gpupool.contract.services import link_of
from gpupool.core.gpu import Isolation, limit_mib
from gpupool.engine.card_words import card_summary
from gpupool.engine.explain import explain, message_of
from kubeclient.objects import Obj

_NODES_A_PAGE = 50
_MOST_HELD = 500
_MOST_WAITING = 50  # listed with their reasons
_MOST_SERVICES = 500
_MOST_REASONS = 200  # nodes in one explanation


@dataclass(frozen=True, slots=True)
class Waits:
    namespace: str
    pod: str
    asks: str
    since: str
    why: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A Service, and the link by which it is reached."""

    namespace: str
    name: str
    kind: str
    link: str


@dataclass(frozen=True, slots=True)
class HeldPart:
    """A part of a card that a pod holds, with its node and card."""

    node: NodeView
    card: int
    memory_mib: int
    part: Part


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("gpupool.console"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["isolation"] = lambda isolation: Isolation(isolation).words
    return made


def sign_in_page(refusal: str = "", *, by_token: bool) -> str:
    return _templates().get_template("sign_in.html").render(refusal=refusal, by_token=by_token)


def trouble_page(title: str, words: str) -> str:
    return _templates().get_template("trouble.html").render(title=title, words=words)


def cards_page(seen: ClusterView, text: str, page: int) -> str:
    """Only nodes that contain `text`. `page` counts from 1; a page beyond the last is the last."""
    everything = overview(seen.cluster)
    nodes = matching(everything.nodes, text)
    pages = max(1, -(-len(nodes) // _NODES_A_PAGE))
    page = max(1, min(page, pages))
    return (
        _templates()
        .get_template("cards.html")
        .render(
            totals=everything.totals,
            found=len(nodes),
            nodes=nodes[(page - 1) * _NODES_A_PAGE : page * _NODES_A_PAGE],
            waiting=len(seen.waiting),
            text=text,
            page=page,
            pages=pages,
        )
    )


def pods_page(seen: ClusterView, text: str) -> str:
    held = [
        each
        for each in _held_parts(overview(seen.cluster).nodes)
        if text.casefold() in f"{each.part.namespace}/{each.part.pod}".casefold()
    ]
    held.sort(key=lambda each: (each.part.namespace, each.part.pod, each.card))
    left = max(0, len(held) - _MOST_HELD)
    template = _templates().get_template("pods.html")
    return template.render(held=held[:_MOST_HELD], left=left, text=text)


def services_page(services: Iterable[Obj]) -> str:
    """Those with an address for people outside of the cluster."""
    reached = [
        Reached(metadata["namespace"], metadata["name"], each["spec"].get("type", ""), link)
        for each in services
        if (metadata := each["metadata"]) and (link := link_of(each))
    ]
    reached.sort(key=lambda each: (each.namespace, each.name))
    left = max(0, len(reached) - _MOST_SERVICES)
    template = _templates().get_template("services.html")
    return template.render(services=reached[:_MOST_SERVICES], left=left)


def waiting_page(seen: ClusterView) -> str:
    listed = [_waits(seen, each) for each in seen.waiting[:_MOST_WAITING]]
    left = len(seen.waiting) - len(listed)
    return _templates().get_template("waiting.html").render(waiting=listed, left=left)


def pod_page(seen: ClusterView, namespace: str, name: str) -> str | None:
    """None: there is no such pod that holds a card or waits for one."""
    for each in seen.waiting:
        if (each.request.namespace, each.request.name) == (namespace, name):
            return _explained(seen, each)
    held = [
        each
        for each in _held_parts(overview(seen.cluster).nodes)
        if (each.part.namespace, each.part.pod) == (namespace, name)
    ]
    if not held:
        return None
    template = _templates().get_template("pod.html")
    return template.render(namespace=namespace, pod=name, held=held)


def _explained(seen: ClusterView, pod: Waiting) -> str:
    found = explain(seen.cluster, pod.request)
    return (
        _templates()
        .get_template("explained.html")
        .render(
            pod=_waits(seen, pod),
            nodes=found.nodes[:_MOST_REASONS],
            left=max(0, len(found.nodes) - _MOST_REASONS),
        )
    )


def _waits(seen: ClusterView, pod: Waiting) -> Waits:
    request = pod.request
    why = f"{message_of(seen.cluster, request)} {card_summary(seen.cluster, request)}".strip()
    return Waits(request.namespace, request.name, asked(request), pod.since, why)


def _held_parts(nodes: tuple[NodeView, ...]) -> list[HeldPart]:
    return [
        HeldPart(node, view.card.index, limit_mib(part.units, view.card), part)
        for node in nodes
        for view in node.cards
        if view.card.units
        for part in view.parts
    ]
