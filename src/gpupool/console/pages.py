"""The pages, as HTML. Everything that comes from outside is escaped by the template engine."""

from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from gpupool.console.overview import (
    NodeView,
    Part,
    Seen,
    Waiting,
    asked,
    matching,
    overview,
)
from gpupool.core.gpu import Isolation, limit_mib
from gpupool.engine.card_words import card_summary
from gpupool.engine.explain import explain, message_of

_NODES_A_PAGE = 50
_MOST_PLACES = 500
_MOST_WAITING = 50  # listed with their reasons
_MOST_REASONS = 200  # nodes of one explanation

_ISOLATION = {
    Isolation.LIMIT: "held to its share",
    Isolation.NONE: "shared, not held",
    Isolation.WHOLE: "whole card",
}


@dataclass(frozen=True, slots=True)
class Waits:
    namespace: str
    pod: str
    asks: str
    since: str
    why: str


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a card with where it is."""

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
    made.filters["isolation"] = _ISOLATION.__getitem__
    return made


def sign_in_page(refusal: str = "", *, by_token: bool) -> str:
    return _templates().get_template("sign_in.html").render(refusal=refusal, by_token=by_token)


def trouble_page(title: str, words: str) -> str:
    return _templates().get_template("trouble.html").render(title=title, words=words)


def cards_page(seen: Seen, text: str, page: int) -> str:
    """`text`: only nodes with it. `page` counts from 1; one beyond the last is the last."""
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


def pods_page(seen: Seen, text: str) -> str:
    places = [
        place
        for place in _places(overview(seen.cluster).nodes)
        if text.casefold() in f"{place.part.namespace}/{place.part.pod}".casefold()
    ]
    places.sort(key=lambda place: (place.part.namespace, place.part.pod, place.card))
    left = max(0, len(places) - _MOST_PLACES)
    template = _templates().get_template("pods.html")
    return template.render(places=places[:_MOST_PLACES], left=left, text=text)


def waiting_page(seen: Seen) -> str:
    listed = [_waits(seen, each) for each in seen.waiting[:_MOST_WAITING]]
    left = len(seen.waiting) - len(listed)
    return _templates().get_template("waiting.html").render(waiting=listed, left=left)


def pod_page(seen: Seen, namespace: str, name: str) -> str | None:
    """None: no such pod holds a card, or waits for one."""
    for each in seen.waiting:
        if (each.request.namespace, each.request.name) == (namespace, name):
            return _explained(seen, each)
    places = [
        place
        for place in _places(overview(seen.cluster).nodes)
        if (place.part.namespace, place.part.pod) == (namespace, name)
    ]
    if not places:
        return None
    template = _templates().get_template("pod.html")
    return template.render(namespace=namespace, pod=name, places=places)


def _explained(seen: Seen, pod: Waiting) -> str:
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


def _waits(seen: Seen, pod: Waiting) -> Waits:
    request = pod.request
    why = f"{message_of(seen.cluster, request)} {card_summary(seen.cluster, request)}".strip()
    return Waits(request.namespace, request.name, asked(request), pod.since, why)


def _places(nodes: tuple[NodeView, ...]) -> list[Place]:
    return [
        Place(node, view.card.index, limit_mib(part.units, view.card), part)
        for node in nodes
        for view in node.cards
        if view.card.units
        for part in view.parts
    ]
