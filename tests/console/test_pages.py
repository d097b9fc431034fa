"""What the pages show, and that they escape all values."""

import re

from gpupool.console.overview import ClusterView, Waiting, asked, overview
from gpupool.console.pages import cards_page, pod_page, pods_page, services_page, waiting_page
from gpupool.contract.names import ANNOTATION_ADDRESS, LABEL_POOL
from gpupool.core.gpu import (
    Allocation,
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    GpuAsk,
    GpuMode,
    Inventory,
    Isolation,
)
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel

V100 = "Tesla V100-SXM2-16GB"
EVIL = "<script>alert(1)</script>"


def card(index: int, **other: object) -> Card:
    return Card(index, f"GPU-{index}", V100, 16130, **other)  # type: ignore[arg-type]


def node(
    name: str, *cards: Card, mode: GpuMode = GpuMode.SHARED, isolates: bool = True
) -> NodeInfo:
    return NodeInfo(
        name,
        labels={LABEL_POOL: "cgpu"},
        allocatable={"cpu": 8000, "pods": 10},
        inventory=Inventory(cards),
        gpu_mode=mode,
        isolates=isolates,
    )


def pod(name: str, *asks: GpuAsk) -> PodRequest:
    return PodRequest(name, "default", name, {"pods": 1}, gpus=asks)


def hold(cluster: ClusterModel, name: str, where: str, units: int, isolation: Isolation) -> None:
    share = CardShare("GPU-0", 0, units, units * 16130 // 15, 15)
    gpus = ContainerGpus("c", (share,), isolation)
    ask = GpuAsk("c", whole=1) if isolation is Isolation.WHOLE else GpuAsk("c", units=units)
    cluster.hold(pod(name, ask), where, Allocation((gpus,)))


def seen(cluster: ClusterModel, *waiting: PodRequest) -> ClusterView:
    return ClusterView(cluster, tuple(Waiting(each, "2026-11-16T00:00:00Z") for each in waiting))


def shared() -> ClusterModel:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0), card(1)))
    hold(cluster, "three", "n1", 3, Isolation.LIMIT)
    hold(cluster, "five", "n1", 5, Isolation.NONE)
    return cluster


def test_a_card_shows_who_holds_how_much_of_it() -> None:
    found = overview(shared())
    (shown,) = found.nodes
    assert (shown.name, shown.pool, shown.use) == ("n1", "cgpu", "shared, isolated")
    first, second = shown.cards
    assert [(part.pod, part.units) for part in first.parts] == [("five", 5), ("three", 3)]
    assert (first.used, first.card.units, second.parts) == (8, 15, ())
    totals = found.totals
    assert (totals.cards, totals.free, totals.used, totals.units, totals.pods) == (2, 1, 8, 30, 2)


def test_nodes_without_cards_are_left_out() -> None:
    cluster = ClusterModel()
    cluster.set_node(NodeInfo("plain", allocatable={"cpu": 1000}))
    assert not overview(cluster).nodes
    assert "No node has GPUs" in cards_page(seen(cluster), "", 1)


def test_a_card_out_of_use_shows_the_reason() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("n1", card(0, health=CardHealth.UNHEALTHY, reason="XID 79")))
    page = cards_page(seen(cluster), "", 1)
    assert "1 not in use" in page
    assert "unhealthy</b> XID 79" in page


def test_only_search_results_are_shown() -> None:
    cluster = shared()
    cluster.set_node(node("other", card(0), mode=GpuMode.WHOLE))
    for text in ("THREE", "default/five", "n1"):
        page = cards_page(seen(cluster), text, 1)
        assert ">n1<" in page
        assert ">other<" not in page
    assert "has “nothing” in its" in cards_page(seen(cluster), "nothing", 1)


def test_many_nodes_come_in_pages() -> None:
    cluster = ClusterModel()
    for number in range(120):
        cluster.set_node(node(f"n{number:03}", card(0)))
    assert "page 1 of 3" in cards_page(seen(cluster), "", 0)
    last = cards_page(seen(cluster), "", 99)
    assert "page 3 of 3" in last
    assert len(re.findall(r'class="name"', last)) == 20


def test_pods_are_listed_with_their_memory() -> None:
    page = pods_page(seen(shared()), "")
    assert "3226 MiB" in page
    assert "held to its share" in page
    assert "not held to its share" in page
    assert "No pod with “zz” in its name holds a GPU" in pods_page(seen(shared()), "zz")


def test_a_waiting_pod_is_explained_node_by_node() -> None:
    cluster = shared()
    waiting = pod("big", GpuAsk("c", units=16))
    page = pod_page(seen(cluster, waiting), "default", "big")
    assert page is not None
    assert "Waits for 16 GiB of a card" in page
    assert "0/1 nodes are available: 1 Insufficient GPU Memory in one device." in page
    assert "the best has 15" in page
    assert "default/big" in waiting_page(seen(cluster, waiting))


def test_of_many_waiting_pods_the_first_are_explained() -> None:
    waiting = [pod(f"w{number}", GpuAsk("c", units=16)) for number in range(60)]
    assert "… and 10 more." in waiting_page(seen(shared(), *waiting))


def test_an_unknown_pod_has_no_page() -> None:
    assert pod_page(seen(shared()), "default", "nobody") is None


def test_a_request_is_described_in_words() -> None:
    assert asked(pod("p", GpuAsk("a", whole=1), GpuAsk("b", whole=2))) == (
        "1 whole card, 2 whole cards"
    )
    two = GpuAsk("c", units=3, cards=2, percent=50)
    assert asked(pod("p", two)) == "3 GiB on each of 2 cards and 50 % of its compute"


def test_names_are_text_and_never_markup() -> None:
    cluster = ClusterModel()
    cluster.set_node(node(EVIL, card(0, health=CardHealth.LOST, reason=EVIL)))
    hold(cluster, EVIL, EVIL, 3, Isolation.LIMIT)
    waiting = pod(EVIL, GpuAsk("c", units=16))
    world = seen(cluster, waiting)
    shown = [
        cards_page(world, "", 1),
        cards_page(world, EVIL, 1),
        pods_page(world, ""),
        pods_page(world, '"><b>'),
        waiting_page(world),
        pod_page(world, "default", EVIL) or "",
    ]
    for page in shown:
        assert "<script>alert" not in page
        assert '"><b>' not in page


def service(name: str, address: str) -> dict[str, object]:
    annotations = {ANNOTATION_ADDRESS: address}
    metadata = {"namespace": "default", "name": name, "annotations": annotations}
    return {"metadata": metadata, "spec": {"type": "LoadBalancer"}}


def test_services_are_links_to_web_pages_and_to_nothing_else() -> None:
    page = services_page(
        [
            service("web", "http://127.0.0.1:30001"),
            service("evil", "javascript:alert(1)"),
            service("quoted", 'http://a/"><script>'),
            {"metadata": {"namespace": "default", "name": "inside"}, "spec": {}},
        ]
    )
    assert '<a href="http://127.0.0.1:30001" target="_blank"' in page
    assert "javascript:" not in page
    assert "<script>" not in page.replace('<script src="/static/refresh.js">', "")
    assert "default/inside" not in page
    assert "No service has an address" in services_page([])
