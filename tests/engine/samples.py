"""Tiny nodes and pods, so that limits, ties and collisions occur."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import Card, CardHealth, CardPlacement, GpuAsk, GpuMode, Inventory, Unread
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import AttachedVolume, PodRequest, PodTerm, Spread
from gpupool.core.ways import Way, Ways
from kubeclient.placement import (
    HostPort,
    NodeOperator,
    NodeRequirement,
    NodeTerm,
    Taint,
    Toleration,
)
from kubeclient.selectors import EVERYTHING, LabelSelector, parse_label_selector

NODE_NAMES = ("n0", "n1", "n2", "n3")
UIDS = tuple(f"u{number}" for number in range(12))
KEYS = ("zone", "disk", "size")
_VALUES = st.sampled_from(("1", "2", "x"))


def often(usual: Any, strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly the usual value, so that not everything is refused for the same reason."""
    return st.one_of(st.just(usual), st.just(usual), strategy)


requirements = st.builds(
    NodeRequirement,
    st.sampled_from(KEYS),
    st.sampled_from(list(NodeOperator)),
    st.lists(_VALUES, min_size=1, max_size=2).map(tuple),
)
name_requirements = st.builds(
    NodeRequirement,
    st.just("metadata.name"),
    st.sampled_from((NodeOperator.IN, NodeOperator.NOT_IN)),
    st.lists(st.sampled_from(NODE_NAMES), min_size=1, max_size=2).map(tuple),
)
terms = st.builds(
    NodeTerm,
    st.lists(requirements, max_size=2).map(tuple),
    often((), st.lists(name_requirements, max_size=1).map(tuple)),
)
taints = st.builds(
    Taint,
    st.sampled_from(("a", "b")),
    st.sampled_from(("", "1")),
    st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
)
tolerations = st.builds(
    Toleration,
    st.sampled_from(("", "a", "b")),
    st.booleans(),
    st.sampled_from(("", "1")),
    st.sampled_from(("", "NoSchedule")),
)
cards = st.builds(
    Card,
    index=st.just(0),
    uuid=st.just(""),
    model=st.sampled_from(("T4", "V100")),
    memory_mib=st.sampled_from((1, 2, 3, 4, 4)),
    health=often(CardHealth.HEALTHY, st.sampled_from(list(CardHealth))),
    outside_mib=often(0, st.integers(0, 3)),
    unit_mib=st.sampled_from((1, 1, 2)),
)


def unread(node: str) -> st.SearchStrategy[Unread | None]:
    """How a pod that another scheduler bound to the node may be closing its cards."""
    uuids = st.frozensets(st.integers(0, 3).map(lambda index: f"{node}-{index}"), max_size=2)
    indexes = st.frozensets(st.integers(0, 3), max_size=2)
    return st.none() | st.builds(Unread, st.just("why"), uuids, indexes)


def _inventory(node: str, found: list[Card], *, with_ways: bool = False) -> Inventory:
    return Inventory(
        tuple(
            Card(
                index,
                f"{node}-{index}",
                card.model,
                card.memory_mib,
                health=card.health,
                outside_mib=card.outside_mib,
                unit_mib=card.unit_mib,
                links=tuple((other, 1) for other in range(len(found)) if (other + index) % 2),
            )
            for index, card in enumerate(found)
        ),
        ways=_WAYS[sum(card.memory_mib for card in found) % len(_WAYS)] if with_ways else None,
    )


_WAYS = (
    Ways(Way.RUNTIME),
    Ways(Way.RUNTIME_CLASS, runtime_class="nvidia"),
    Ways(Way.RUNTIME, known=(Way.RUNTIME_CLASS,), runtime_class="nvidia"),
    Ways(Way.NRI),
    Ways(Way.NVIDIA_NRI, cdi_kind="nvidia.com/gpu"),
)


_rarely = often(False, st.booleans())


@st.composite
def nodes(draw: st.DrawFn) -> NodeInfo:
    name = draw(st.sampled_from(NODE_NAMES))
    some_cards = draw(st.lists(cards, max_size=3))
    return NodeInfo(
        name,
        labels=draw(st.dictionaries(st.sampled_from(KEYS), _VALUES)),
        taints=draw(often((), st.lists(taints, max_size=2).map(tuple))),
        unschedulable=bool(draw(often(False, st.booleans()))),
        allocatable={
            "cpu": draw(st.integers(0, 4)),
            "x.io/y": draw(st.integers(0, 2)),
            "pods": draw(st.integers(0, 4)),
        },
        inventory=(
            _inventory(name, some_cards, with_ways=draw(_rarely))
            if draw(st.booleans()) or some_cards
            else None
        ),
        gpu_mode=draw(st.sampled_from(list(GpuMode))),
        card_placement=draw(st.sampled_from((None, *CardPlacement))),
        volume_limits=draw(often({}, st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)))),
    )


selectors: st.SearchStrategy[LabelSelector] = st.sampled_from(
    (EVERYTHING, *(parse_label_selector(text) for text in ("app=a", "app!=a", "app")))
)
pod_terms = st.builds(
    PodTerm,
    selectors,
    st.sampled_from(("zone", "zone", "disk")),
    st.sampled_from((("default",), ("default", "other"), ())),
    st.sampled_from((None, EVERYTHING, parse_label_selector("team=1"))),
)
spreads = st.builds(
    Spread,
    st.sampled_from(("zone", "zone", "disk")),
    st.one_of(st.just(EVERYTHING), selectors),
    st.integers(1, 2),
    required=st.booleans(),
    min_domains=st.integers(1, 3),
    honors_affinity=st.booleans(),
    honors_taints=st.booleans(),
)
whole_asks = st.builds(GpuAsk, st.just(""), whole=st.integers(1, 2), is_init=_rarely)
share_asks = st.builds(
    GpuAsk,
    st.just(""),
    units=st.integers(1, 3),
    cards=st.sampled_from((1, 1, 2)),
    percent=st.sampled_from((0, 0, 0, 30, 60)),
    is_init=_rarely,
)


def _named(asks: list[GpuAsk]) -> tuple[GpuAsk, ...]:
    return tuple(
        GpuAsk(f"c{at}", a.whole, a.units, a.cards, a.percent, a.is_init)
        for at, a in enumerate(asks)
    )


gpu_asks = st.one_of(
    st.lists(share_asks, min_size=1, max_size=1),
    st.lists(whole_asks, min_size=1, max_size=1),
    st.lists(share_asks, min_size=2, max_size=3),
    st.lists(st.one_of(whole_asks, share_asks), max_size=3),
).map(_named)


volumes = st.builds(AttachedVolume, st.sampled_from(("a", "b")), st.sampled_from(("1", "2", "3")))


def _node_rules(draw: st.DrawFn) -> dict[str, Any]:
    port = st.builds(
        HostPort, st.sampled_from(("0.0.0.0", "1.1.1.1")), st.just("TCP"), st.integers(80, 81)
    )
    return {
        "node_selector": draw(often((), st.tuples(st.tuples(st.sampled_from(KEYS), _VALUES)))),
        "node_terms": draw(often(None, st.lists(terms, max_size=2).map(tuple))),
        "preferred": draw(often((), st.tuples(st.tuples(st.integers(1, 9), terms)))),
        "tolerations": draw(st.lists(tolerations, max_size=2).map(tuple)),
        "host_ports": draw(often((), st.tuples(port))),
        "node_name": draw(often("", st.sampled_from(NODE_NAMES))),
        "volume_terms": draw(often((), st.tuples(st.lists(terms, max_size=2).map(tuple)))),
        "volume_zones": draw(often((), st.tuples(st.lists(terms, max_size=2).map(tuple)))),
        "attached": draw(often((), st.lists(volumes, max_size=3).map(tuple))),
    }


def _company(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "affinity": draw(often((), st.lists(pod_terms, min_size=1, max_size=2).map(tuple))),
        "anti_affinity": draw(often((), st.lists(pod_terms, max_size=1).map(tuple))),
        "near": draw(often((), st.tuples(st.tuples(st.sampled_from((-5, 3)), pod_terms)))),
        "terminating": draw(often(False, st.booleans())),
    }


def _evenness(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "spreads": draw(
            st.one_of(
                st.tuples(spreads.map(lambda spread: replace(spread, required=True))),
                st.lists(spreads, max_size=2).map(tuple),
            )
        ),
        "node_selector": draw(often((), st.tuples(st.tuples(st.just("disk"), st.just("1"))))),
        "tolerations": draw(st.lists(tolerations, max_size=1).map(tuple)),
        "terminating": draw(often(False, st.booleans())),
    }


_models = st.lists(st.sampled_from(("T4", "v100", "*", "A10")), max_size=2).map(tuple)
_uuids = st.lists(
    st.builds(
        lambda node, index: f"{node}-{index}", st.sampled_from(NODE_NAMES), st.integers(0, 2)
    ),
    max_size=3,
).map(tuple)
card_choices = st.builds(
    CardChoice, _models, often((), _models), often((), _uuids), often((), _uuids)
)


def _gpus(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "gpus": draw(gpu_asks),
        "card_placement": draw(st.sampled_from((None, None, *CardPlacement))),
        "same_card": draw(often("", st.just("s"))),
        "different_card": draw(often("", st.just("d"))),
        "card_choice": draw(often(None, card_choices)),
        "runtime_class": draw(often("", st.sampled_from(("nvidia", "kata")))),
    }


def _everything(draw: st.DrawFn) -> dict[str, Any]:
    return {**_evenness(draw), **_node_rules(draw), **_company(draw), **_gpus(draw)}


def _volumes(draw: st.DrawFn) -> dict[str, Any]:
    return {"attached": draw(st.lists(volumes, max_size=3).map(tuple))}


THEMES = {
    "volumes": _volumes,
    "nodes": _node_rules,
    "company": _company,
    "evenness": _evenness,
    "gpus": _gpus,
    "everything": _everything,
}


@st.composite
def pods(draw: st.DrawFn, theme: str = "everything", uid: str | None = None) -> PodRequest:
    uid = uid or draw(st.sampled_from(UIDS))
    resources = {"pods": 1, "cpu": draw(st.sampled_from((0, 0, 1, 2)))}
    resources["x.io/y"] = draw(st.sampled_from((0, 0, 0, 0, 1)))
    return PodRequest(
        uid,
        draw(st.sampled_from(("default", "default", "other"))),
        f"p-{uid}",
        resources,
        labels=draw(st.dictionaries(st.just("app"), st.sampled_from(("a", "b")))),
        priority=draw(st.integers(0, 2)),
        **THEMES[theme](draw),
    )


# Nodes that differ only in what the theme tests, so that nothing else decides.
_MORE_ROOM = {"cpu": 6, "x.io/y": 2, "pods": 6}


@st.composite
def themed_nodes(draw: st.DrawFn, theme: str) -> NodeInfo:
    node = draw(nodes())
    if theme == "everything":
        return node
    mode = draw(often(GpuMode.ANY, st.sampled_from(list(GpuMode))))
    with_ways = draw(_rarely)
    some_cards = _inventory(
        node.name, draw(st.lists(cards, min_size=1, max_size=3)), with_ways=with_ways
    )
    kept: dict[str, dict[str, Any]] = {
        "nodes": {"inventory": None},
        "volumes": {
            "taints": (),
            "unschedulable": False,
            "inventory": None,
            "volume_limits": draw(st.dictionaries(st.sampled_from("ab"), st.integers(0, 3))),
        },
        "company": {
            "taints": (),
            "unschedulable": False,
            "inventory": None,
            "labels": {**node.labels, "zone": draw(_VALUES)},
        },
        "evenness": {
            "unschedulable": False,
            "inventory": None,
            "labels": {**node.labels, "zone": draw(_VALUES)},
            "taints": draw(st.lists(taints, max_size=1).map(tuple)),
        },
        "gpus": {
            "taints": (),
            "unschedulable": False,
            "gpu_mode": mode,
            "inventory": some_cards,
        },
    }
    return replace(node, allocatable=_MORE_ROOM, **kept[theme])
